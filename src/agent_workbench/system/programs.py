"""Programs of the machine by their absolute path: none is looked for in the current folder."""

import os
import shutil
from pathlib import Path

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def clean_path(path: str, *forbidden: str) -> str:
    """Return the entries of a `PATH` that are absolute and not inside any of the `forbidden` folders."""
    folders = [Path(folder).resolve() for folder in forbidden if folder]
    kept = [
        entry
        for entry in path.split(os.pathsep)
        if Path(entry).is_absolute() and not any(Path(entry).resolve().is_relative_to(folder) for folder in folders)
    ]
    return os.pathsep.join(dict.fromkeys(kept)) or _DEFAULT_PATH


def find_program(name: str, path: str, *forbidden: str) -> str | None:
    """Return the absolute path of the program `name` on the cleaned `path`, None where there is none.

    A `name` with a slash is the caller's own choice of a file and is only made absolute.
    """
    found = shutil.which(name, path=clean_path(path, *forbidden))
    return os.path.abspath(found) if found else None  # noqa: PTH100 - a link keeps its name
