"""Compaction of the context: the older steps are replaced by a summary when the window is full."""
