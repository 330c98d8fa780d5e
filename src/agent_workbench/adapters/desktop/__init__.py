"""What a person sees outside the terminal UI: editor, notifications, exports."""
