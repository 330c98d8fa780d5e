"""Dispatch of a plan: its tasks prepared and approved, put into the queue, and followed to their end."""
