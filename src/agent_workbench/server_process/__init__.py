"""Process that serves a client that started it: its pipe, its log and its end."""
