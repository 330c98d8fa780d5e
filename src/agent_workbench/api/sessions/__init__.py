"""Sessions of this process: the host that opens them, their handles and feeds, unattended runs, and the inbox."""
