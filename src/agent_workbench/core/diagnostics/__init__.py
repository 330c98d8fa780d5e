"""Findings about the set-up: endpoints, trials of models, quality of the code search."""
