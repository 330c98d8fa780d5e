"""Process that serves a client that started it: its pipe and its log; and the end of any process of ours."""
