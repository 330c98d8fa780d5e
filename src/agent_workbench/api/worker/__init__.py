"""Unattended worker: tasks of a queue on sessions of their own, one after the other or several at once."""
