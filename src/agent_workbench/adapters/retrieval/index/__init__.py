"""Inverted index of one folder's files: chunks at definitions, immutable segments, views for searching, snapshots."""
