"""Queue of tasks on one machine: the user's files in the repo, and the claims of workers in the state folder."""
