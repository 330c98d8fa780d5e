"""Queue of tasks in the shared database: a table of signed tasks, dispatched as Procrastinate jobs."""
