"""Consultants: a model's review, debugging, specification and the like, which changes nothing."""
