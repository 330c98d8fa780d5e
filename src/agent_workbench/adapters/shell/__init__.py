"""Commands in the workspace: sandbox, environment, and limits of time and output."""
