"""Rewriting of pieces: a model gives a piece of a file its whole new text, and the change of the file follows."""
