"""Glob matching of POSIX paths: `**` for any number of folders, `*`, `?` and `[...]` within one name."""

import re
from fnmatch import fnmatchcase


def matches_glob(path: str, pattern: str) -> bool:
    """Return True if the whole of `path` matches `pattern`; both are relative, with `/` between names.

    `**` alone matches everything. `src/**` and `src/` match everything in `src`, but not `src` itself. `**/x` matches
    `x` in any folder and at the root, `*.py` only at the root. Names that begin with a dot are not special, and case
    matters.
    """
    names = path.split("/")
    parts = _parts(pattern)
    # reached[i]: the parts so far match the first i names. Linear in names times parts, whatever the pattern.
    reached = [True] + [False] * len(names)
    for position, part in enumerate(parts):
        if part == "**":
            least = 1 if position and position == len(parts) - 1 else 0
            reached = _any_number(reached, least)
        else:
            reached = [False] + [
                before and fnmatchcase(name, part) for before, name in zip(reached[:-1], names, strict=True)
            ]
    return reached[-1]


def literal_glob(path: str) -> str:
    """Return the glob that matches this path and no other."""
    return re.sub(r"([*?[])", r"[\1]", path)


def _parts(pattern: str) -> list[str]:
    if pattern.endswith("/"):
        pattern += "**"
    return pattern.removeprefix("./").lstrip("/").split("/")


def _any_number(reached: list[bool], least: int) -> list[bool]:
    first = reached.index(True) + least if True in reached else len(reached)
    return [index >= first for index in range(len(reached))]
