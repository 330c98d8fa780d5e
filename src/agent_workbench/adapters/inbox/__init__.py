"""Inbox of decisions on disk: one durable file for each decision made outside the session's process."""
