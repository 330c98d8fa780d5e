"""The verbs of the command `agent` that belong to no subject."""
