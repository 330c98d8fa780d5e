"""Programs by absolute path, never from the current folder, and the environment of child processes."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_PASSED_ON = frozenset({"HOME", "PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "XDG_CACHE_HOME"})
_LOCALE = "LC_"


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

    A `name` with a slash is a path of the caller's choice and is only made absolute.
    """
    found = shutil.which(name, path=clean_path(path, *forbidden))
    return os.path.abspath(found) if found else None  # noqa: PTH100 - a link keeps its name


def child_environment(environ: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """Return the variables that a child process needs, and those with one of `prefixes` that name no secret."""
    from agent_workbench.core.text.secrets import looks_secret  # 16 ms, which not every command line needs

    begins = (_LOCALE, *prefixes)
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED_ON or (name.startswith(begins) and not looks_secret(name))
    }
