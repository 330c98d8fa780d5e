"""The tools a model may call, one file for each."""
