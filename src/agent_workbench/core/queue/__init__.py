"""Tasks from outside: their results and issues, their routing, schedules, and the workers that do them."""
