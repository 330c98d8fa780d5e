"""Tools of the server: each makes one call of the api."""
