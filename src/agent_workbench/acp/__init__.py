"""Front end for editors: the workbench as an agent of the Agent Client Protocol, a client of the session host."""
