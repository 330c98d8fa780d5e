"""The command `agent`: one module for each verb, and output, options and screen that they share."""
