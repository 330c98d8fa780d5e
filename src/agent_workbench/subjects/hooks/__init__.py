"""Hooks: commands of the user or the repository that are told of events."""
