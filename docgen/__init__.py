"""Generator of the reference: tables of `docs/`, made from the code that they describe."""
