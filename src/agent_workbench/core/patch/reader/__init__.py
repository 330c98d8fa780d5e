"""Reader of unified diffs: from text to files, hunks and lines, with a report of what it repaired."""
