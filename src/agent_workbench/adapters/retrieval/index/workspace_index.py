"""The index of one workspace: files come, change and go, and searches see the state they began with."""

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

# The newest segments are merged whenever one comes while they have no more postings than this together: that is cheap,
# what changes again and again stays in one, and the scores of a small index stay exact.
_SMALL = 30_000
_MOST_SEGMENTS = 8
# A segment joins in a merge when it is at most so many times as large as all later ones together.
_JOINS = 2
# All is merged when more pieces than these are dead, and more than this part of all.
_WORTH_MERGING = 2_000
_MOST_DEAD = 1 / 3


class WorkspaceIndex:
    """What changes: the newest `view`. One thread at a time may change it; any may take the view and search that.

    What is taken in is merged now and then, so that there are never many segments nor many dead files among them.
    """

    def __init__(self) -> None:
        self.view = IndexView()

    @classmethod
    def load(cls, path: Path) -> tuple["WorkspaceIndex", bytes]:
        """Return what was saved at `path`, with its `extra`; raises `DamagedIndex` where it cannot be used. Blocks."""
        snapshot = load_snapshot(path)
        index = cls()
        index.view = IndexView(snapshot.segments, snapshot.alive)
        return index, snapshot.extra

    def save(self, path: Path, extra: bytes = b"", max_bytes: int = MAX_BYTES) -> int:
        """Save the newest state; return the size in bytes, 0 where it is too large to be kept. See `save_snapshot`."""
        view = self.view
        return save_snapshot(path, Snapshot(view.segments, view.alive, extra), max_bytes)

    def take(self, segment: Segment, *, tidy: bool = True) -> None:
        """Take in the segment's files, each in place of what was known under its path.

        Unless `tidy` nothing is merged, and who calls asks `untidy` and merges elsewhere.
        """
        paths = list(segment.files.paths)
        alive = [*self._without(paths), _last_of_each(paths)]
        self._set([*self.view.segments, segment], alive, tidy=tidy)

    def untidy(self) -> int | None:
        """Return from which segment on all should be merged into one, None when nothing should."""
        return _place_to_merge(self.view)

    def replace_from(self, place: int, merged: Segment) -> None:
        """Put what `merge` made of the segments from `place` on, as they are in `view`, in their place."""
        import numpy as np

        alive = np.ones(len(merged.files.kinds), bool)
        self.view = IndexView([*self.view.segments[:place], merged], [*self.view.alive[:place], alive])

    def drop(self, *paths: str) -> None:
        """Forget these files, as far as they are known."""
        if any(self.view.find(path) for path in paths):
            self._set(self.view.segments, self._without(paths))

    def compact(self) -> None:
        """Make one segment of all, without what is dead: then every score is exact, and search is fastest."""
        if len(self.view.segments) > 1 or not all(mask.all() for mask in self.view.alive):
            self.view = _merged_from(0, self.view)

    def blob_of(self, path: str) -> str:
        """Return the content the file has in the index, empty when it is not in it."""
        return self.view.blob_of(path)

    def _without(self, paths: Sequence[str]) -> "list[Mask]":
        """Return which files are alive when these are gone; masks that change are copied."""
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

    def _set(self, segments: Sequence[Segment], alive: "Sequence[Mask]", *, tidy: bool = True) -> None:
        view = IndexView(segments, alive)
        place = _place_to_merge(view) if tidy else None
        self.view = view if place is None else _merged_from(place, view)


def _place_to_merge(view: IndexView) -> int | None:
    """Return where the segments begin that should be merged into one, None where none should."""
    pieces, dead = view.pieces, view.dead_pieces
    if dead > max(_WORTH_MERGING, (pieces + dead) * _MOST_DEAD):
        return 0
    place = _newest_to_merge([segment.postings for segment in view.segments])
    return place if place < len(view.segments) - 1 else None


def _merged_from(place: int, view: IndexView) -> IndexView:
    """Return the view with one segment made of the one at `place` and all later ones."""
    import numpy as np

    merged = merge(view.segments[place:], view.alive[place:])
    alive = np.ones(len(merged.files.kinds), bool)
    return IndexView([*view.segments[:place], merged], [*view.alive[:place], alive])


def _newest_to_merge(sizes: Sequence[int]) -> int:
    """Return where the newest segments begin that are small together; `sizes` are in postings.

    Where there are too many it is the last two at least, and before them those that are not much larger than all later
    ones together: so what was merged once is not soon merged again.
    """
    place, total = len(sizes), 0
    while place and total + sizes[place - 1] <= _SMALL:
        place -= 1
        total += sizes[place]
    if len(sizes) > _MOST_SEGMENTS:
        place = min(place, len(sizes) - 2)
        total = sum(sizes[place:])
        while place and sizes[place - 1] <= _JOINS * total:
            place -= 1
            total += sizes[place]
    return place


def _last_of_each(paths: Sequence[str]) -> "Mask":
    """Return which files of a new segment are alive: of several with one path, the last."""
    import numpy as np

    last = {path: number for number, path in enumerate(paths)}
    alive = np.zeros(len(paths), bool)
    alive[list(last.values())] = True
    return alive
