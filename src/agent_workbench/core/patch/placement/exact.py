"""Where the hunks of a diff stand in a file: in the one right place, or nowhere."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.placement.mismatch import misfit, nearest_place
from agent_workbench.core.patch.values import FilePatch, Hunk

_PLACES_NAMED = 5


class FileLines(Struct, frozen=True):
    """A file's lines without their line feeds; `terminated` says whether the last one has its own."""

    bodies: list[bytes]
    terminated: bool

    @classmethod
    def of(cls, data: bytes) -> "FileLines":
        """Split `data` at line feeds and nowhere else; an empty file has no lines."""
        bodies = data.split(b"\n")
        terminated = not bodies[-1]
        return cls(bodies[:-1] if terminated else bodies, terminated)

    @property
    def ends(self) -> frozenset[bytes]:
        """The kinds of line ends in the file; both where it is mixed, none where no line has an end."""
        ended = self.bodies if self.terminated else self.bodies[:-1]
        return frozenset(b"\r\n" if body.endswith(b"\r") else b"\n" for body in ended)


class _Old(Struct, frozen=True):
    """The old lines of a hunk; `unterminated` if the diff marks the last one as having no line feed."""

    hunk: Hunk
    bodies: list[bytes]
    unterminated: bool


class _View:
    """The file's lines as they are compared: to the byte, or forgiving what the diff's writer may have left out."""

    def __init__(self, lines: FileLines, *, forgiving: bool, without_cr: bool = False) -> None:
        self.bodies = [body.removesuffix(b"\r") for body in lines.bodies] if without_cr else lines.bodies
        self.terminated = lines.terminated
        self.forgiving = forgiving
        # Every line stands between two line feeds here, so that whole lines are found by one search in bytes.
        self.text = b"\n" + b"".join(body + b"\n" for body in self.bodies)
        self.offsets = list(accumulate((len(body) + 1 for body in self.bodies), initial=0))

    def holds(self, old: _Old, at: int) -> bool:
        end = at + len(old.bodies)
        return at >= 0 and end <= len(self.bodies) and self._end_fits(old, end) and self.bodies[at:end] == old.bodies

    def places(self, old: _Old, start: int) -> Iterator[int]:
        """Yield every index at or after `start` where the old lines stand."""
        if old.unterminated:
            at = len(self.bodies) - len(old.bodies)
            if at >= start and self.holds(old, at):
                yield at
            return
        needle = b"\n" + b"".join(body + b"\n" for body in old.bodies)
        found = self.text.find(needle, self.offsets[start])
        while found >= 0:
            at = bisect_left(self.offsets, found)
            if self._end_fits(old, at + len(old.bodies)):
                yield at
            found = self.text.find(needle, found + 1)

    def _end_fits(self, old: _Old, end: int) -> bool:
        at_open_end = end == len(self.bodies) and not self.terminated
        return at_open_end if old.unterminated else self.forgiving or not at_open_end


def place_hunks(file: FilePatch, lines: FileLines) -> tuple[int, ...]:
    """Return for each hunk the index (from 0) of the line where its old lines stand, in order and without overlap.

    If every hunk stands at the line its header says, that is where they are. If one does not, the numbers are wrong and
    choose nothing: then each hunk must stand in one place only behind the hunk before it. To the byte comes first; a
    missing marker for a missing last line feed, and in a diff without any carriage return those of the file, are
    forgiven where nothing fits to the byte; line numbers then choose only in a file without mixed line ends.
    Raises `PatchError` where a hunk stands nowhere or in several places.
    """
    olds = [_old(hunk) for hunk in file.hunks]
    if any(not old.bodies for old in olds) and lines.bodies:
        raise PatchError(
            f"{shown(file.path)}: a hunk that only adds lines does not say where",
            advice="Give at least one line of context with it.",
        )
    exact = _View(lines, forgiving=False)
    forgiving = _View(lines, forgiving=True, without_cr=not carries_cr(file))
    # In a file with mixed line ends what is forgiven may stand where only the line ends tell two places apart.
    places = _at_headers(olds, exact, exact if len(lines.ends) > 1 else forgiving)
    return places if places is not None else _by_content(file.path, olds, forgiving)


def carries_cr(file: FilePatch) -> bool:
    """Return whether a line of the diff ends with a carriage return: its writer kept the file's CRLF line ends."""
    return any(line.text.endswith("\r") for hunk in file.hunks for line in hunk.lines)


def _old(hunk: Hunk) -> _Old:
    old = hunk.old
    return _Old(hunk, [line.text.encode() for line in old], bool(old) and not old[-1].newline)


def _at_headers(olds: Sequence[_Old], exact: _View, forgiving: _View) -> tuple[int, ...] | None:
    places = []
    start = 0
    for old in olds:
        at = max(old.hunk.old_start - 1, 0)
        if at < start or not forgiving.holds(old, at):
            return None
        if not exact.holds(old, at) and next(exact.places(old, 0), None) is not None:
            return None
        places.append(at)
        start = at + len(old.bodies)
    return tuple(places)


def _by_content(path: str, olds: Sequence[_Old], view: _View) -> tuple[int, ...]:
    places = []
    start = 0
    for old in olds:
        found = [at for at, _ in zip(view.places(old, start), range(_PLACES_NAMED + 1), strict=False)]
        if not found:
            raise _nowhere(path, old, view, start)
        if len(found) > 1:
            raise _several(path, old, found)
        places.append(found[0])
        start = found[0] + len(old.bodies)
    return tuple(places)


def _several(path: str, old: _Old, found: Sequence[int]) -> PatchError:
    named = ", ".join(str(at + 1) for at in found[:_PLACES_NAMED])
    more = ", …" if len(found) > _PLACES_NAMED else ""
    return PatchError(
        f"{shown(path)}: the old lines of the hunk at line {old.hunk.old_start} stand in more than one place: "
        f"lines {named}{more}",
        advice="Give more context, or the right line numbers for every hunk of the file.",
    )


def _nowhere(path: str, old: _Old, view: _View, start: int) -> PatchError:
    what = f"{shown(path)}: the old lines of the hunk at line {old.hunk.old_start} stand nowhere"
    if start:
        what += f" behind the hunk before it (from line {start + 1})"
    before = next(view.places(old, 0), None)
    if before is not None:
        return PatchError(f"{what}; they stand at line {before + 1}", advice="Give the hunks in the file's order.")
    wanted = [_text(body) for body in old.bodies]
    lines = [_text(body) for body in view.bodies]
    header = min(max(old.hunk.old_start - 1, start), max(len(lines) - 1, 0))
    return misfit(what, wanted, lines, nearest_place(wanted, lines, header, start))


def _text(body: bytes) -> str:
    return body.decode(errors="surrogateescape")
