"""The queue of tasks that workers do: in a folder of the repository, or in a database that machines share."""
