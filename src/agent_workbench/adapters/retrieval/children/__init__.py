"""Processes of ours that work for the session: how they are started, spoken with, and ended."""
