"""One hunk of a diff as text for an editor, and the diff with the edited hunk."""

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_text import hunk_line_text, render_patch
from agent_workbench.core.patch.reader.hunk_bodies import read_lines
from agent_workbench.core.patch.values import Hunk, HunkLine, LineKind, Patch


def hunk_text(patch: Patch, hunk_id: str) -> str:
    """Return the lines of a hunk with their signs; raise `PatchError` if the patch has no such hunk."""
    return "".join(map(hunk_line_text, _hunk(patch, hunk_id).lines))


def with_hunk_text(patch: Patch, hunk_id: str, text: str) -> str:
    """Return the text of the whole diff with these lines for the hunk; without a change in them the hunk drops out.

    Raises `PatchError` for a line without a sign, and if the patch has no such hunk.
    """
    lines = _lines(text)
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


def _lines(text: str) -> tuple[HunkLine, ...]:
    body = text.removesuffix("\n").split("\n") if text else []
    for number, raw in enumerate(body, start=1):
        if raw not in {"", "\r"} and raw[0] not in (" +-\\" if number > 1 else " +-"):
            raise PatchError(
                f"line {number} of the hunk begins with {raw[0]!r}",
                advice="Each line begins with a space (it stays), + (it comes) or - (it goes).",
            )
    return tuple(line.as_hunk_line() for line in read_lines(body))
