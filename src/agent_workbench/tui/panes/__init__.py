"""The panes of the main screen, one file for each."""
