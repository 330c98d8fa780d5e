"""Plans read from and written to YAML without losing the user's comments."""
