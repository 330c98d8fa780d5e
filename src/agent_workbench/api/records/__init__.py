"""Recorded sessions: events, comparison, export, fork, proofs, and a search in their records."""
