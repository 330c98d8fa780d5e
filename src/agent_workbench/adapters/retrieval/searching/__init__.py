"""What a query asks for, what speaks for each file, and which pieces are shown."""
