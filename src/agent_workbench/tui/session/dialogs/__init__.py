"""Dialogs of a session, one module for each subject."""
