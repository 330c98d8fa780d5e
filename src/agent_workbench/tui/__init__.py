"""Terminal UI: it shows views and submits intents."""
