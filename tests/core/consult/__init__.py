"""Consultants as values: requests, attempts, findings, the log."""
