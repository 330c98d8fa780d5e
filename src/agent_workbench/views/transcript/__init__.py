"""The transcript of a session: one entry for each event that a person reads."""
