"""What a front end shows: pure functions from a session's state to small frozen values."""
