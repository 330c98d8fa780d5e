"""Files of one folder in which a command may have left anything: read, scanned and changed without following a link."""
