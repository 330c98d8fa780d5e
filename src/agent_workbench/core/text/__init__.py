"""Text: made safe for display, formatted, merged, and searched for secrets."""
