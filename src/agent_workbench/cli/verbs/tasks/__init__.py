"""Verbs for tasks: the plan, runs with and without a person, decisions and the merge."""
