"""A file's bytes with edits done to them: what stays keeps its bytes, what is added ends as its neighbours do."""

from collections.abc import Sequence

from agent_workbench.core.patch.file_lines import Ground
from agent_workbench.core.patch.placement.edits import Edit
from agent_workbench.core.patch.placement.pieces import Doubt, Placing
from agent_workbench.core.patch.reader.hunk_bodies import LooseLine


def spliced(ground: Ground, done: Sequence[tuple[Placing, tuple[Edit, ...]]], *, carries_cr: bool) -> bytes:
    """Return the file's bytes after all edits, given in the file's order.

    `carries_cr` says that lines of the diff end with a carriage return. Raises `Doubt` where the line end of an added
    line is not certain.
    """
    parts: list[bytes] = []
    at = 0
    for placing, edits in done:
        ending = _Ending(ground, placing, carries_cr=carries_cr)
        for edit in edits:
            parts += ground.raws[at : edit.start]
            if edit.start == len(ground) and edit.added and parts and not parts[-1].endswith(b"\n"):
                # The last line of the file is the last no longer.
                parts[-1] += ending.end
            parts += _added(ground, placing, edit, ending)
            at = edit.end
    parts += ground.raws[at:]
    if any(not part.endswith(b"\n") for part in parts[:-1]):
        raise Doubt("`\\ No newline at end of file` stands behind a line that is not the last")
    return b"".join(parts)


def _added(ground: Ground, placing: Placing, edit: Edit, ending: "_Ending") -> list[bytes]:
    parts = [ending.written(line) for line in edit.added]
    replaces_end = edit.end == len(ground) > edit.start and not ground.terminated
    said = any(not line.newline for line in placing.new_lines)
    if parts and replaces_end and not said:
        old = [body.encode(errors="surrogateescape") for body in ground.bodies[edit.start : edit.end]]
        if [part.rstrip(b"\r\n") for part in parts] != [body.rstrip(b"\r") for body in old]:
            raise Doubt(
                "the file's last line has no line feed, and whether the new one has one is not said "
                "(`\\ No newline at end of file` belongs behind a line without)"
            )
    return parts


class _Ending:
    """How the added lines of one hunk end: as they came, or as the file's lines beside them do."""

    def __init__(self, ground: Ground, placing: Placing, *, carries_cr: bool) -> None:
        pairs = [
            (line.text.endswith("\r"), ground.bodies[at].endswith("\r"), ground.is_open(at))
            for line, at in zip(placing.piece.old, placing.at, strict=True)
        ]
        ended = [(said, there) for said, there, is_open in pairs if not is_open]
        self.adds = any(there and not said for said, there in ended)
        self.drops = any(said and not there for said, there in ended)
        if not ended and not carries_cr and ground.ends == {b"\r\n"}:
            self.adds = True
        added = [line for line in placing.new_lines if line.sign == "+"]
        wrong = self.adds and self.drops
        mixed = (self.adds and any(not there for _, there in ended)) or (
            self.drops and any(there for _, there in ended)
        )
        if added and (wrong or mixed or (self.drops and not all(line.text.endswith("\r") for line in added))):
            raise Doubt("how an added line is to end is not certain: the file's lines around it end differently")
        if added and self.adds and any(line.text.endswith("\r") for line in added):
            raise Doubt("how an added line is to end is not certain: the diff's own lines end differently")

    @property
    def end(self) -> bytes:
        """The line end that the file's last line gets when lines are added behind it."""
        return b"\r\n" if self.adds else b"\n"

    def written(self, line: LooseLine) -> bytes:
        """Return an added line with its end."""
        text = line.text.removesuffix("\r") if self.drops else line.text
        if not line.newline:
            return text.encode()
        return text.encode() + (b"\r\n" if self.adds else b"\n")
