"""Recorded sessions: summaries, comparison, replay marks, past actions, and proofs of journals and commits."""
