"""Commands run in the workspace, bounded in time, output and reach."""
