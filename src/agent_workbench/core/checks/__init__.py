"""Checks of a task: results of tests and lint, failures in their output, judges, and language servers."""
