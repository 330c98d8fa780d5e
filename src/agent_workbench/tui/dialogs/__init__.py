"""Modal dialogs that ask the user for one thing."""
