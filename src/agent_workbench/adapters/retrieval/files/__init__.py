"""Which files are indexed, and what is known of each before it is read."""
