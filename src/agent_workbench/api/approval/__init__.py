"""Rules of approval, and what a policy would pass."""
