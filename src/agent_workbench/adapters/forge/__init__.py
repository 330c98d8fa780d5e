"""Forge over HTTP: Gitea and Forgejo."""
