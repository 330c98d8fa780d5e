"""Bars above and below the panes: gate bar, replay bar, status line, tab strips."""
