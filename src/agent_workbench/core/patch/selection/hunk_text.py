"""One hunk of a diff as a text that a person edits, and the diff with what came of it."""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.values import Hunk, HunkLine, LineKind, Patch

_NO_NEWLINE = "\\"


def hunk_text(patch: Patch, hunk_id: str) -> str:
    """Return the lines of a hunk, each behind its sign; raises `PatchError` where the patch has no such hunk."""
    return "".join(
        f"{line.kind}{line.text}\n" + ("" if line.newline else "\\ No newline at end of file\n")
        for line in _hunk(patch, hunk_id).lines
    )


def with_hunk_text(patch: Patch, hunk_id: str, text: str) -> str:
    """Return the whole diff with these lines in place of the hunk's; without any change in them the hunk drops out.

    Raises `PatchError` for a line that begins with no sign, and where the patch has no such hunk.
    """
    lines = tuple(_lines(text))
    changes = any(line.kind is not LineKind.CONTEXT for line in lines)
    _hunk(patch, hunk_id)
    files = []
    for file in patch.files:
        hunks = tuple(
            replace(hunk, lines=lines) if hunk.id == hunk_id else hunk
            for hunk in file.hunks
            if changes or hunk.id != hunk_id
        )
        if hunks or not file.hunks:
            files.append(replace(file, hunks=hunks))
    return render_patch(Patch(tuple(files)))


def _hunk(patch: Patch, hunk_id: str) -> Hunk:
    for file in patch.files:
        for hunk in file.hunks:
            if hunk.id == hunk_id:
                return hunk
    raise PatchError(f"the diff has no hunk {hunk_id[:12]}", advice="Show the diff again and decide anew.")


def _lines(text: str) -> Iterator[HunkLine]:
    last: HunkLine | None = None
    for number, raw in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        if raw.startswith(_NO_NEWLINE) and last is not None:
            last = replace(last, newline=False)
            continue
        if last is not None:
            yield last
        sign = raw[:1] or " "
        if sign not in " +-":
            raise PatchError(
                f"line {number} of the hunk begins with {sign!r}",
                advice="Each line begins with a space (it stays), + (it comes) or - (it goes).",
            )
        last = HunkLine(LineKind(sign), raw[1:])
    if last is not None:
        yield last
