"""Journals that machines share: leases, copies of lines, and what is read back of them."""
