"""Project in a repository: the commands of its tests and linters, read from the files of its tools."""
