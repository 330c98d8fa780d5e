"""Tools of skills: their texts and files, and Python scripts in an environment of their own."""
