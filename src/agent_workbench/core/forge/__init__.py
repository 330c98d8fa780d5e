"""Work that comes from a forge: issues as tasks, and decisions in comments."""
