"""Mutable index of one workspace: changes create a new view, and searches keep the view they began with."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.index.merge import merge
from agent_workbench.adapters.retrieval.index.segments import Segment
from agent_workbench.adapters.retrieval.index.snapshot import MAX_BYTES, Snapshot, load_snapshot, save_snapshot
from agent_workbench.adapters.retrieval.index.view import IndexView

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

# The newest segments are merged while together they have at most this many postings. That is cheap, keeps files that
# change often in one segment, and keeps the scores of a small index exact.
_SMALL = 30_000
_MAX_SEGMENTS = 8
# A segment is merged with all later ones if it is at most this many times as large as they are together.
_MERGE_RATIO = 2
# All segments are merged if more chunks than this, and more than this share of all, are deleted.
_WORTH_MERGING = 2_000
_MAX_DEAD = 1 / 3


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
