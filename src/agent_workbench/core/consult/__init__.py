"""Consultants: what can be asked of each, the prompt made of it, attempts, findings and the log of a session."""
