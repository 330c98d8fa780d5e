"""Workspaces, checkpoints and commits in the user's repository."""
