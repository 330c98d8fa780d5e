"""Forge over HTTP: Gitea, Forgejo and GitHub."""
