"""Recorded sessions: played back, run again to the byte, asked of another model, forked."""
