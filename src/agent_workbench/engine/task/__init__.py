"""The life of one task: start, execution of approved actions, recovery after a stop, undo, end."""
