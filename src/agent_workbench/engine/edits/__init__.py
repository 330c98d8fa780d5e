"""Diffs of the model: the lines that its answer may contain, and the fit of an answer to the files."""
