"""Screens that stand over the panes: help, palettes, questions."""
