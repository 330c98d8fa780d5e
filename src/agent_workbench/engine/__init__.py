"""What the workbench does with a task: prompt, step, gate, record, replay."""
