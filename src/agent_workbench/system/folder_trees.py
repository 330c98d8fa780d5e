"""Folders with any content that a command may have left: their size on the disk, and their removal."""

import os
import stat
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


def remove_tree(path: str) -> None:
    """Remove a folder with its content, a file or a link; raise `OSError`. A missing path is no error.

    Links are removed, not followed. Depth and missing permissions do not matter: nested folders are moved to the top
    one by one, so that paths have two levels at most.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        Path(path).unlink()
        return
    moved, taken = 0, set[str]()
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        Path(folder).chmod(0o700)
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        if folder == path:
            taken = {name for _, name, _ in found}
        for inside, _, is_folder in found:
            if not is_folder:
                os.unlink(inside)  # noqa: PTH108 - there may be a million
            elif folder == path:
                waiting.append(inside)
            else:
                while (name := str(moved)) in taken:
                    moved += 1
                moved += 1
                Path(inside).chmod(0o700)  # a folder that changes its parent is written to
                Path(inside).rename(f"{path}/{name}")
                waiting.append(f"{path}/{name}")
        if folder != path:
            Path(folder).rmdir()
    Path(path).rmdir()
