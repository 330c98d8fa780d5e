"""Tasks from outside: the result of a queued task, and the issue that it comes from."""
