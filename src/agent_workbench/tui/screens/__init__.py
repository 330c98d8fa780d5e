"""Screens and dialogs above the panes, such as help, sessions, receipt and the input line."""
