"""Knowledge: notes that outlive a task, their names and texts, and what sessions made of them."""
