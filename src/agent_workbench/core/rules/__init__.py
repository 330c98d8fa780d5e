"""Approval rules: which proposals pass without a question, and which commands a task must never run."""
