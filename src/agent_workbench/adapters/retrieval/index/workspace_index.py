"""Mutable index of one workspace: a new view for each change, and its snapshot as one mapped file."""

import mmap
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex, pack, take_array, unpack
from agent_workbench.adapters.retrieval.index.segments import Segment, merge
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.system.atomic_files import storage_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Array = NDArray[np.generic]


MAX_BYTES = 400 * 1024 * 1024
# A temporary file of this age was abandoned.
_ABANDONED_SECONDS = 600.0
_MAX_READ_SEGMENTS = 64

# The newest segments are merged while together they have at most this many postings. That is cheap, keeps files that
# change often in one segment, and keeps the scores of a small index exact.
_SMALL = 30_000
_MAX_SEGMENTS = 8
# A segment is merged with all later ones if it is at most this many times as large as they are together.
_MERGE_RATIO = 2
# All segments are merged if more chunks than this, and more than this share of all, are deleted.
_WORTH_MERGING = 2_000
_MAX_DEAD = 1 / 3


class Snapshot(Struct, frozen=True):
    """Segments, masks of their live files, and `extra` bytes of the caller."""

    segments: "Sequence[Segment]"
    alive: "Sequence[Mask]"
    extra: bytes = b""


def save_snapshot(path: Path, snapshot: Snapshot, max_bytes: int = MAX_BYTES) -> int:
    """Replace the file at `path`; return its size, or 0 if it would exceed `max_bytes` and was not written.

    A process that mapped the former file keeps it. Of several writers the last one wins. Blocks. Raises `StorageError`.
    """
    import numpy as np

    arrays: dict[str, Array] = {"extra": np.frombuffer(snapshot.extra, np.uint8)}
    for number, (segment, alive) in enumerate(zip(snapshot.segments, snapshot.alive, strict=True)):
        arrays |= segment.arrays(f"{number}/") | {f"{number}/alive": alive}
    parts = pack(arrays)
    size = sum(map(len, parts))
    if size > max_bytes:
        return 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _forget_abandoned(path)
        _replace(path, parts)
    except OSError as error:
        raise storage_error(f"the search index could not be saved at {path}", error) from error
    return size


def load_snapshot(path: Path) -> Snapshot:
    """Return the mapped snapshot; raise `DamagedIndex` if there is no file that `save_snapshot` wrote."""
    try:
        # A pipe in place of the file must not block.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
                raise DamagedIndex("it is no regular file, or too large")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file, or a path that no file can have
        raise DamagedIndex(str(error)) from error
    arrays = unpack(memoryview(mapped))
    segments: list[Segment] = []
    alive: list[Mask] = []
    while f"{len(segments)}/alive" in arrays and len(segments) < _MAX_READ_SEGMENTS:
        segment = Segment.from_arrays(arrays, f"{len(segments)}/")
        mask = take_array(arrays, f"{len(segments)}/alive", ("bool",), len(segment.files.kinds))
        alive.append(cast("Mask", mask))
        segments.append(segment)
    return Snapshot(segments, alive, take_array(arrays, "extra", ("uint8",)).tobytes())


def _replace(path: Path, parts: Sequence[bytes | memoryview]) -> None:
    """Write a temporary file and rename it. There is no fsync: the checksum detects what a power cut spoils."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{time.monotonic_ns()}.tmp")
    try:
        with fresh.open("xb", buffering=0) as file:
            for part in parts:
                rest = memoryview(part)
                while rest:
                    rest = rest[file.write(rest) :]
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _forget_abandoned(path: Path) -> None:
    for other in path.parent.glob(f"{path.name}.*.tmp"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > _ABANDONED_SECONDS:
                other.unlink()


class WorkspaceIndex:
    """Holder of the newest `view`. One thread at a time may change it; any thread may search the view.

    New segments are merged from time to time, which bounds the number of segments and of deleted files.
    """

    def __init__(self) -> None:
        self.view = IndexView()

    @classmethod
    def load(cls, path: Path) -> tuple["WorkspaceIndex", bytes]:
        """Return the index saved at `path` and its `extra` bytes; raise `DamagedIndex` if it cannot be used. Blocks."""
        snapshot = load_snapshot(path)
        index = cls()
        index.view = IndexView(snapshot.segments, snapshot.alive)
        return index, snapshot.extra

    def save(self, path: Path, extra: bytes = b"", max_bytes: int = MAX_BYTES) -> int:
        """Save the newest view; return the size in bytes, 0 if it is too large to be kept. See `save_snapshot`."""
        view = self.view
        return save_snapshot(path, Snapshot(view.segments, view.alive, extra), max_bytes)

    def add(self, segment: Segment, *, is_merged: bool = True) -> None:
        """Add the segment's files, each in place of the former file at its path.

        Unless it `is_merged`, nothing is merged: the caller asks `merge_position` and merges elsewhere.
        """
        paths = list(segment.files.paths)
        alive = [*self._without(paths), _last_of_each(paths)]
        self._set([*self.view.segments, segment], alive, is_merged=is_merged)

    def merge_position(self) -> int | None:
        """Return the position from which on segments should be merged into one, None if none should."""
        return _merge_position(self.view)

    def replace_from(self, place: int, merged: Segment) -> None:
        """Replace the segments of `view` from `place` on by the result of their `merge`."""
        import numpy as np

        alive = np.ones(len(merged.files.kinds), bool)
        self.view = IndexView([*self.view.segments[:place], merged], [*self.view.alive[:place], alive])

    def remove(self, *paths: str) -> None:
        """Delete these files, if they are indexed."""
        if any(self.view.find(path) for path in paths):
            self._set(self.view.segments, self._without(paths))

    def compact(self) -> None:
        """Merge all segments into one without deleted files; then scores are exact, and search is fastest."""
        if len(self.view.segments) > 1 or not all(mask.all() for mask in self.view.alive):
            self.view = _merged_from(0, self.view)

    def blob_of(self, path: str) -> str:
        """Return the content the file has in the index, empty when it is not in it."""
        return self.view.blob_of(path)

    def _without(self, paths: Sequence[str]) -> "list[Mask]":
        """Return the masks of live files without these; changed masks are copies."""
        masks = list(self.view.alive)
        copied: set[int] = set()
        for found in map(self.view.find, paths):
            if found is not None:
                place, local = found
                if place not in copied:
                    masks[place] = masks[place].copy()
                    copied.add(place)
                masks[place][local] = False
        return masks

    def _set(self, segments: Sequence[Segment], alive: "Sequence[Mask]", *, is_merged: bool = True) -> None:
        view = IndexView(segments, alive)
        place = _merge_position(view) if is_merged else None
        self.view = view if place is None else _merged_from(place, view)


def _merge_position(view: IndexView) -> int | None:
    """Return the position from which on segments should be merged into one, None if none should."""
    chunks, dead = view.chunks, view.deleted_chunks
    if dead > max(_WORTH_MERGING, (chunks + dead) * _MAX_DEAD):
        return 0
    place = _newest_to_merge([segment.postings for segment in view.segments])
    return place if place < len(view.segments) - 1 else None


def _merged_from(place: int, view: IndexView) -> IndexView:
    """Return the view with the segments from `place` on merged into one."""
    import numpy as np

    merged = merge(view.segments[place:], view.alive[place:])
    alive = np.ones(len(merged.files.kinds), bool)
    return IndexView([*view.segments[:place], merged], [*view.alive[:place], alive])


def _newest_to_merge(sizes: Sequence[int]) -> int:
    """Return the position from which on the newest segments should be merged; `sizes` are in postings.

    Those are the segments that are small together. If there are too many segments, the last two are merged, and before
    them each that is not much larger than all later ones together; so a merged segment is not soon merged again.
    """
    place, total = len(sizes), 0
    while place and total + sizes[place - 1] <= _SMALL:
        place -= 1
        total += sizes[place]
    if len(sizes) > _MAX_SEGMENTS:
        place = min(place, len(sizes) - 2)
        total = sum(sizes[place:])
        while place and sizes[place - 1] <= _MERGE_RATIO * total:
            place -= 1
            total += sizes[place]
    return place


def _last_of_each(paths: Sequence[str]) -> "Mask":
    """Return the mask of a new segment's live files: of several with one path, the last."""
    import numpy as np

    last = {path: number for number, path in enumerate(paths)}
    alive = np.zeros(len(paths), bool)
    alive[list(last.values())] = True
    return alive
