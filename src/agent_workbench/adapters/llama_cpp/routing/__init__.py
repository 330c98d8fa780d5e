"""Choice of the endpoint that answers: models by role, fallback chains, prices and spending caps."""
