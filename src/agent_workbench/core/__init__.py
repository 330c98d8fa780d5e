"""The vocabulary of the workbench: values, folds, ports and errors, without any input or output."""
