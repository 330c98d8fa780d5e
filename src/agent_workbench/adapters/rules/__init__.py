"""Approval rules in files: the repo's settings and the user's own file, edited in place."""
