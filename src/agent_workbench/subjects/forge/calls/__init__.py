"""Calls about a forge: rounds over its issues, reports to them, and pull requests."""
