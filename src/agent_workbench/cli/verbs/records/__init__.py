"""Verbs for what sessions recorded: lists, exports, forks, replay, proofs and removal."""
