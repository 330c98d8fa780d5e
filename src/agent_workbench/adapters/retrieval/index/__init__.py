"""Inverted index of one folder's files: immutable segments, views for searching, snapshots on disk."""
