"""The inbox: what waits for a person in any session, and decisions made in another process."""
