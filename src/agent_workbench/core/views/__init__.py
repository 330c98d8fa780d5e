"""What each pane shows: pure functions from an update of a session to small frozen values."""
