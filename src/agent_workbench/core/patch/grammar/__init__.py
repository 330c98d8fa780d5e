"""GBNF grammar of the diffs that apply to the files as they are now."""
