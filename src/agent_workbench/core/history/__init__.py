"""Recorded sessions: summaries, comparison, replay, past actions, audit, leftovers, and proofs."""
