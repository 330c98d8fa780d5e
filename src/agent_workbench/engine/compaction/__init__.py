"""Compaction of the context: a summary replaces the older steps when the context is full."""
