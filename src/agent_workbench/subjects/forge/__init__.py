"""Forges: issues that become tasks, comments that decide, and branches with pull requests."""
