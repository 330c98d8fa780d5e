"""The receipt of a prompt: its parts, their tokens, and what the server read again."""
