"""Screens above the panes: lists and texts, such as help, sessions, receipt and inbox."""
