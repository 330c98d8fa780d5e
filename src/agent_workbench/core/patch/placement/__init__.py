"""Placement of hunks: where their lines are in a file, and which position is certain."""
