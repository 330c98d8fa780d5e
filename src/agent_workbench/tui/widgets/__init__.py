"""Widgets that several panes and screens share: lists of rows, styles, highlighting."""
