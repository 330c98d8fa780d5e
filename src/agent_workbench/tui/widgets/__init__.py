"""Widgets that several panes and screens share: lists of rows, bars of one line, styles, highlighting."""
