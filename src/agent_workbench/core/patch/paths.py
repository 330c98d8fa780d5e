"""Which paths a diff may name, and which names a disk may take for one another."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from itertools import islice

from agent_workbench.core.errors import PatchError

# HFS+ leaves these out when it compares names (git's utf8.c, next_hfs_char).
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# They turn the direction of text, so that a name reads as another one.
_TURNS_TEXT = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SHORT_GIT = re.compile(r"git~[0-9]+")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4096
# Comparing takes a second for this many, and most repositories have fewer.
_MOST_COMPARED = 20_000
_LIKE_ENOUGH = 0.7


def shown(text: str, limit: int = 200) -> str:
    """Return `text` fit for a message: what does not print is escaped, and what is over `limit` characters is cut."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut)


def fold_path(path: str) -> str:
    """Return the form in which names that some disk takes for the same (case, Unicode form) are equal."""
    if path.isascii():
        return path.lower()
    bare = _IGNORED_BY_HFS.sub("", path)
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", bare).casefold())


def check_path(path: str) -> None:
    """Raise `PatchError` with the cause unless `path` may be named by a diff, wherever it leads."""
    cause = _fault(path)
    if cause:
        raise PatchError(
            f"{shown(path) or 'a path'}: {cause}",
            advice="Name files by their path from the root of the repository, such as src/app.py.",
        )


def _fault(path: str) -> str:
    if not path:
        return "the diff names an empty path"
    if _has_control_characters(path):
        return "the name holds a control character"
    if "\\" in path:
        return "the name holds a backslash; folders are separated by /"
    if path.startswith(("/", "~/")) or _DRIVE.match(path):
        return "the path is absolute"
    if len(path.encode(errors="replace")) > _MAX_PATH_BYTES:
        return f"the path is longer than {_MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_name_fault, path.split("/"))), "")


def _name_fault(name: str) -> str:
    if not name:
        return "the path has an empty component"
    if name in {".", ".."}:
        return f"the path has a component {name}"
    if is_git_folder(name):
        return "the path leads into git's own folder"
    if len(name.encode(errors="replace")) > _MAX_NAME_BYTES:
        return f"a name in the path is longer than {_MAX_NAME_BYTES} bytes"
    return ""


def _has_control_characters(text: str) -> bool:
    return bool(_TURNS_TEXT.search(text)) or any(unicodedata.category(char) in _CONTROL_CATEGORIES for char in text)


def is_git_folder(name: str) -> bool:
    """Return whether some file system takes `name` (one component) for `.git`.

    HFS+ ignores some characters, NTFS trailing dots and spaces and what follows a colon, and calls it `GIT~1`.
    """
    bare = _IGNORED_BY_HFS.sub("", name).casefold().partition(":")[0].rstrip(" .")
    return bare == ".git" or bool(_SHORT_GIT.fullmatch(bare))


def find_clash(paths: Iterable[str], known: Iterable[str] = ()) -> tuple[str, str] | None:
    """Return the first of `paths` that is spelled otherwise than an equal name before it or in `known`, and that name.

    Equal means equal after `fold_path`; folders on the way count too, as `src/a` and `SRC/b` are in one folder on
    some disks and in two on others. None when there is no such pair.
    """
    spellings: dict[str, set[str]] = {}
    for prefix in {prefix for path in known for prefix in _prefixes(path)}:
        spellings.setdefault(fold_path(prefix), set()).add(prefix)
    for path in paths:
        for prefix in _prefixes(path):
            others = spellings.setdefault(fold_path(prefix), {prefix})
            if prefix not in others:
                return path, min(others)
    return None


def find_folder_clash(paths: Iterable[str], known: Iterable[str] = ()) -> tuple[str, str] | None:
    """Return a path that would be a file, and one below it: both of `paths`, or one of these and one of `known`."""
    new = set(paths)
    everything = new | set(known)
    for path in sorted(everything):
        for folder in _prefixes(path):
            if folder != path and folder in everything and (path in new or folder in new):
                return folder, path
    return None


def similar_paths(path: str, paths: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """Return those of `paths` that `path` may be a slip of, the likeliest first: those with a name like its own."""
    by_name: dict[str, list[str]] = {}
    for each in islice(paths, _MOST_COMPARED):
        by_name.setdefault(_name(each), []).append(each)
    by_stem: dict[str, list[str]] = {}
    for name in by_name:
        by_stem.setdefault(_stem(name), []).append(name)
    name = _name(path)
    close = get_close_matches(_stem(name), by_stem, n=most, cutoff=_LIKE_ENOUGH)
    names = dict.fromkeys((*((name,) if name in by_name else ()), *(each for stem in close for each in by_stem[stem])))
    found = (each for name in names for each in sorted(by_name[name], key=lambda each: _unlike(path, each)))
    return tuple(islice(found, most))


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].casefold()


def _stem(name: str) -> str:
    return name.partition(".")[0] or name


def _unlike(one: str, other: str) -> float:
    return 1 - SequenceMatcher(None, one, other).ratio()


def _prefixes(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path
