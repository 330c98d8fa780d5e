"""Agent Skills from the repository, the user's configuration and the package."""
