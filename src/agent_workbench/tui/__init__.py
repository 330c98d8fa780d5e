"""The terminal UI: it shows views and posts intents."""
