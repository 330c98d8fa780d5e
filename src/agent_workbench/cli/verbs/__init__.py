"""The verbs of the command `agent`, one module each, by subject."""
