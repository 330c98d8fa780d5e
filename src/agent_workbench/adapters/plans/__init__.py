"""Plans in YAML files, read strictly and changed without losing the user's comments."""
