"""Commit messages and the files they touched, ranked for a query."""
