"""The prompt as a pure function of the session's state: its messages, their sizes, and the text of each event."""
