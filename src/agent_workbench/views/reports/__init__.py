"""Reports on recorded sessions: comparison, pull request text, JSON document, proofs."""
