"""Conversation with the model in a session without a task: its prompt, answers, calls of tools, and files."""
