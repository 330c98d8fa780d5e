"""Refs of sessions in a git remote that machines share."""
