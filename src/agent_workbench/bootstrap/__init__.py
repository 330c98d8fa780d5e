"""Composition root: chooses the adapters of a repository and wires them. It decides nothing itself."""
