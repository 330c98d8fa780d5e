"""Forge: issues become queued tasks, comments become decisions, and results are reported."""
