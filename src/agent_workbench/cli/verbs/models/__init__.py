"""Verbs for models: their servers, their tests, and answers outside of a task."""
