"""The demo: a small repo with a failing test, and what the scripted model says about it."""
