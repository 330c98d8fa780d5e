"""Several sessions, and one that is replayed: list, tabs, fork, search, replay bar, timeline."""
