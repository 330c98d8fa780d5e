"""Hooks: command lines of the settings, run in the sandbox with what their entry grants."""
