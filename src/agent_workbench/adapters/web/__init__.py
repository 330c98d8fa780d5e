"""Web server for the workbench in a browser of this machine."""
