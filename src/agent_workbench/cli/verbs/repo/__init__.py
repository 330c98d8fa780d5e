"""Verbs for a repository: its set-up, trust, rules, search and diagnosis."""
