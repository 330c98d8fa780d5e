"""Removal of whole folders, whatever a command left in them."""

import os
import stat
from pathlib import Path


def remove_tree(path: str) -> None:
    """Remove a folder with all in it, or the file or link that is there; raise `OSError`.

    Links are removed and not followed. Depth and missing permissions do not matter: the folders inside are moved up
    to the top one by one, so no path grows longer than the second level. A path that does not exist is no error.
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
