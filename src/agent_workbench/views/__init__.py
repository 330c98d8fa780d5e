"""Views for front ends: pure functions from a session's state to small frozen values."""
