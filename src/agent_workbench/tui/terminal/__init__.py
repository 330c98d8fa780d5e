"""The app's terminal: key queue, themes, clipboard, control code guard, notifications, external editor."""
