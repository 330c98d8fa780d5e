"""Panes of the main screen, their layout, and the screen that holds them."""
