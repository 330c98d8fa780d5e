"""State of a session, and facts read from the events that led to it."""
