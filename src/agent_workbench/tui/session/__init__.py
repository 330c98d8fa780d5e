"""Session tabs of the app: the tab of each session, its main screen, and its dialogs."""
