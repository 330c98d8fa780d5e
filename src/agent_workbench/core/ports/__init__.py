"""What the workbench needs of the world, and what a front end needs of a session: protocols named by role."""
