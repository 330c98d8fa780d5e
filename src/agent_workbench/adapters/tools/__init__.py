"""Check of tool arguments against JSON Schemas, in a process of its own with bounds on time and memory."""
