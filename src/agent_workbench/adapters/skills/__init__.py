"""Skills found in the repository, the user's home and the package."""
