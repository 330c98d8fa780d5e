"""Consultations against a real repository and journal, and models that say what they are told to."""
