"""Diffs on the screen: lines, headers, changed words, and the review of a whole task."""
