"""Ways to the server, and what guards them: pipes of a client, HTTP on loopback."""
