"""Tests of the hooks as commands."""
