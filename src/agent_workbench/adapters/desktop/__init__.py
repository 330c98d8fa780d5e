"""Notifications of the desktop."""
