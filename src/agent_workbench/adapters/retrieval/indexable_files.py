"""Selection of the files that are indexed, and stamps that tell which of them changed."""

import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.file_kinds import is_bulk, is_bulk_content
from agent_workbench.adapters.retrieval.index.segments import blob_id
from agent_workbench.adapters.retrieval.index.source_languages import find_language, language_of
from agent_workbench.core.patch.paths import matches_glob
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.system.folder_trees import open_regular, read_regular

MAX_FILE_BYTES = 400_000
# Bound of all files together; the index takes about as much memory, and for a time twice as much.
MAX_TOTAL_BYTES = 400_000_000
# A file that changed this shortly before its stamp was taken may change again at the same time stamp.
_CLOCK_TICK_NS = 50_000_000
_MAX_CACHED = 500_000
_SUBMODULE = re.compile(rb"^[ \t]*\[submodule[ \t]", re.MULTILINE | re.IGNORECASE)


class FileStamp(Struct, frozen=True):
    """File metadata from the disk: equal stamps mean equal content, unless `fresh`."""

    modified_ns: int
    changed_ns: int
    size: int
    inode: int
    fresh: bool = False


NONE_KNOWN: Mapping[str, FileStamp] = MappingProxyType({})


class ExcludedPaths:
    """Set of the paths that match a pattern, hold secrets by their name, or nothing worth finding (`is_bulk`).

    The result for each path is cached: there may be a hundred thousand, tested at each update.
    """

    def __init__(self, patterns: Collection[str]) -> None:
        self._patterns = tuple(patterns)
        self._known: dict[str, bool] = {}

    def __contains__(self, path: str) -> bool:
        """Return True for a path that is never indexed."""
        found = self._known.get(path)
        if found is None:
            if len(self._known) > _MAX_CACHED:
                self._known.clear()
            found = self._known[path] = (
                holds_secrets(path) or is_bulk(path) or any(matches_glob(path, pattern) for pattern in self._patterns)
            )
        return found


def stamp_files(
    root: str, paths: Sequence[str], exclude: ExcludedPaths, now_ns: int, known: Mapping[str, FileStamp] = NONE_KNOWN
) -> dict[str, FileStamp]:
    """Return a stamp for each regular file that is not excluded; the `known` stamp itself if the file did not change.

    `now_ns` is the time since the epoch. Blocks.
    """
    stamps: dict[str, FileStamp] = {}
    for path in paths:
        if path in exclude:
            continue
        try:
            # Making a `Path` of each takes three times as long as the stat itself.
            found = os.lstat(f"{root}/{path}")
        except (OSError, ValueError):
            continue
        before = known.get(path)
        if before is not None and _holds(before, found):
            stamps[path] = before
        elif stat.S_ISREG(found.st_mode):
            stamps[path] = _stamp(found, now_ns)
    return stamps


def _holds(stamp: FileStamp, found: os.stat_result) -> bool:
    return (
        stamp.changed_ns == found.st_ctime_ns
        and stamp.modified_ns == found.st_mtime_ns
        and stamp.size == found.st_size
        and stamp.inode == found.st_ino
        and not stamp.fresh
        and stat.S_ISREG(found.st_mode)
    )


def _stamp(found: os.stat_result, now_ns: int) -> FileStamp:
    fresh = max(found.st_mtime_ns, found.st_ctime_ns) > now_ns - _CLOCK_TICK_NS
    return FileStamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, fresh)


def within_bounds(stamps: Mapping[str, FileStamp], max_bytes: int = MAX_TOTAL_BYTES) -> dict[str, FileStamp]:
    """Return the files to index: none that is too large, and source first if all exceed `max_bytes` together."""
    fitting = {path: stamp for path, stamp in stamps.items() if stamp.size <= MAX_FILE_BYTES}
    if sum(stamp.size for stamp in fitting.values()) <= max_bytes:
        return fitting
    kept: dict[str, FileStamp] = {}
    total = 0
    for path in sorted(fitting, key=lambda path: (find_language(language_of(path)) is None, path)):
        total += fitting[path].size
        if total > max_bytes:
            break
        kept[path] = fitting[path]
    return kept


def count_submodules(root: str) -> int:
    """Return the number of submodules in `.gitmodules`, whose files git does not list. Blocks."""
    try:
        with os.fdopen(open_regular(f"{root}/.gitmodules", follow=True), "rb") as file:
            return len(_SUBMODULE.findall(file.read(MAX_FILE_BYTES)))
    except (OSError, ValueError):
        return 0


def secrets_among(root: str, paths: Iterable[str]) -> list[str]:
    """Return the blob ids of files that would be indexed if their name did not say that they hold secrets. Blocks."""
    found = []
    for path in paths:
        if holds_secrets(path):
            with suppress(OSError, ValueError):
                found.append(blob_id(read_regular(f"{root}/{path}", MAX_FILE_BYTES)))
    return found


def count_left_out(root: str, paths: Sequence[str], exclude: ExcludedPaths) -> int:
    """Return the number of files that are not excluded, but too large or too many to be indexed. Blocks."""
    found = stamp_files(root, paths, exclude, 0)
    return len(found) - len(within_bounds(found))


def is_searchable(path: str, data: bytes) -> bool:
    """Return True for content that is text, and worth finding."""
    return len(data) <= MAX_FILE_BYTES and b"\0" not in data and not is_bulk_content(path, data)
