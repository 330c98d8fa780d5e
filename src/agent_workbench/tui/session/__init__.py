"""One session in the window: its tab, its main screen, and the dialogs that its user opens."""
