"""Vocabulary of the workbench: values, events, folds, ports and errors. No input or output, no clock."""
