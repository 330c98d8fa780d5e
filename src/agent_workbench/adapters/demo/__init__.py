"""The demo: a sample repo with a failing test, and the scripted answers of its model."""
