"""Forges over HTTP: Gitea, Forgejo and GitHub behind one port."""
