"""Execution of tasks: prompt, step, gate, record, replay."""
