"""The verbs of `agent sessions`."""
