"""A session as OpenTelemetry spans."""
