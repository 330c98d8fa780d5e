"""Line ends of added lines: as the diff writes them, or as the file's lines around them have them."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.patch.file_lines import FileLines, LineEdit
from agent_workbench.core.patch.placement.edits import PieceEdit
from agent_workbench.core.patch.placement.pieces import Doubt, Placement
from agent_workbench.core.patch.reader.hunk_bodies import WrittenLine

Placed = tuple[Placement, tuple[PieceEdit, ...]]


def with_line_ends(file: FileLines, placed: Sequence[Placed], *, carries_cr: bool) -> Iterator[LineEdit]:
    """Yield the edits of a file with the line ends of all added lines.

    `carries_cr` is True if a line of the diff ends with a carriage return. Raises `Doubt` if the line end of an added
    line is not certain.
    """
    for placement, edits in placed:
        ends = _LineEnds(file, placement, carries_cr=carries_cr)
        for edit in edits:
            added = tuple(ends.written(line) for line in edit.added)
            _check_last_line(file, placement, edit, added)
            yield LineEdit(edit.start, edit.end, added, ends.added)


def _check_last_line(file: FileLines, placement: Placement, edit: PieceEdit, added: Sequence[bytes]) -> None:
    """Raise `Doubt` if the last line has no line feed and the diff does not say whether its replacement has one."""
    replaces_last = edit.end == len(file) > edit.start and not file.terminated
    if not added or not replaces_last or any(not line.newline for line in placement.new_lines):
        return
    old = [text.encode(errors="surrogateescape") for text in file.texts[edit.start : edit.end]]
    if [line.rstrip(b"\r\n") for line in added] != [line.rstrip(b"\r") for line in old]:
        raise Doubt(
            "the file's last line has no line feed, and whether the new one has one is not said "
            "(`\\ No newline at end of file` belongs behind a line without)"
        )


class _LineEnds:
    """Line ends of the added lines of one hunk; `added` is the end of a line without a carriage return of its own."""

    def __init__(self, file: FileLines, placement: Placement, *, carries_cr: bool) -> None:
        pairs = [
            (line.text.endswith("\r"), file.texts[at].endswith("\r"))
            for line, at in zip(placement.piece.old, placement.at, strict=True)
            if not file.is_unterminated(at)
        ]
        adds = any(actual and not written for written, actual in pairs)
        self._drops = any(written and not actual for written, actual in pairs)
        if not pairs and not carries_cr and file.ends == {b"\r\n"}:
            adds = True
        self.added = b"\r\n" if adds else b"\n"
        added = [line.text.endswith("\r") for line in placement.new_lines if line.sign == "+"]
        mixed = (adds and not all(actual for _, actual in pairs)) or (
            self._drops and any(actual for _, actual in pairs)
        )
        if added and ((adds and self._drops) or mixed or (self._drops and not all(added))):
            raise Doubt("how an added line is to end is not certain: the file's lines around it end differently")
        if adds and any(added):
            raise Doubt("how an added line is to end is not certain: the diff's own lines end differently")

    def written(self, line: WrittenLine) -> bytes:
        """Return an added line with its line end."""
        text = line.text.removesuffix("\r") if self._drops else line.text
        return text.encode() + (self.added if line.newline else b"")
