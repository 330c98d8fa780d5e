"""Checks of a task: results of tests and lint, and what their output says about failures."""
