"""Size of a folder on the disk."""

import os
from contextlib import suppress
from pathlib import Path

BLOCK_BYTES = 512


def disk_usage(path: Path) -> int:
    """Return the bytes that a folder takes on the disk; links are not followed, unreadable folders count as empty."""
    total = 0
    waiting = [str(path)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
