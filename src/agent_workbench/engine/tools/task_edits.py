"""Edits that a task names itself, as one diff. No model is asked."""

from asyncio import to_thread
from collections.abc import Collection

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError, WorkspaceError
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.fit import fit_diff
from agent_workbench.core.patch.patch_reader import read_diff
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.plan import TaskEdit
from agent_workbench.core.proposals import APPLY_EDITS, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.write_diff import WriteDiff

MOST_PLACES = 5
MAX_BYTES = 10_000_000
"""Limit of a file that is searched for the text of an edit."""

TOOL = WriteDiff(name=APPLY_EDITS, summary="make the edits that the task names", permission=Permission.DIFF, raw=True)


async def draft_edits(context: ToolContext) -> Proposal:
    """Return all edits of the task as one diff, each made on the result of those before it.

    Raises `PatchError` or `WorkspaceError` that names the edit which does not fit, and the errors of a diff's draft.
    """
    files = _EditedFiles(context, await context.workspace.list_files())
    for number, edit in enumerate(context.task.edits):
        try:
            await files.make(edit)
        except (PatchError, WorkspaceError) as error:
            raise type(error)(f"edits[{number}]: {error}", advice=error.advice) from error
    diff = await to_thread(render_changes, files.changes())
    if not diff:
        raise PatchError("the edits change nothing", advice="the files are as the edits want them already")
    return await TOOL.draft(context, Arguments({}), diff)


class _EditedFiles:
    """Files of the workspace with the edits made so far; nothing is written."""

    def __init__(self, context: ToolContext, existing: Collection[str]) -> None:
        self._context = context
        self._existing = set(existing)
        self._before: dict[str, FileContent | None] = {}
        self._now: dict[str, FileContent | None] = {}

    def changes(self) -> tuple[FileChange, ...]:
        """Return the change of each file that was edited."""
        return tuple(FileChange(path, self._before[path], now) for path, now in self._now.items())

    async def make(self, edit: TaskEdit) -> None:
        """Make one edit; raise `PatchError` or `WorkspaceError` if it does not fit."""
        if edit.diff is not None:
            await self._apply(edit.diff)
            return
        present = await self._read(edit.path)
        if edit.content is not None:
            data = edit.content.encode()
            self._put(edit.path, replace(present, data=data) if present is not None else FileContent(data))
            return
        if present is None:
            raise PatchError(f"there is no file {shown(edit.path)}", advice="correct the path")
        found, put = edit.find or "", edit.replace or ""
        data = await to_thread(_replaced, edit.path, present.data, found, put)
        self._put(edit.path, replace(present, data=data))

    async def _apply(self, diff: str) -> None:
        readings = await to_thread(read_diff, diff, self._context.patch_bounds(), self._existing)
        preimages = {path: await self._read(path) for path in readings.paths}
        fit = await to_thread(fit_diff, readings, preimages, self._existing)
        for change in fit.changes:
            self._put(change.path, change.after)

    async def _read(self, path: str) -> FileContent | None:
        if path not in self._now:
            self._before[path] = self._now[path] = await self._context.workspace.read(path)
        return self._now[path]

    def _put(self, path: str, content: FileContent | None) -> None:
        self._now[path] = content
        self._existing.discard(path)
        if content is not None:
            self._existing.add(path)


def _replaced(path: str, data: bytes, found: str, put: str) -> bytes:
    """Return the content with the one place of a text replaced; raise `PatchError` unless it is there exactly once."""
    if len(data) > MAX_BYTES:
        raise PatchError(f"{shown(path)} has more than {MAX_BYTES} bytes", advice="change it with a diff")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PatchError(f"{shown(path)} is not UTF-8 text", advice="change it with a command") from error
    if found not in text and "\r\n" in text and "\r" not in found + put:
        found, put = found.replace("\n", "\r\n"), put.replace("\n", "\r\n")
    places = _places(text, found)
    if not places:
        advice = "compare it with the file, blanks and line ends too"
        raise PatchError(f"{quoted(found)} is nowhere in {shown(path)}", advice=advice)
    if len(places) > 1:
        named = [f"{shown(path)}:{text.count(chr(10), 0, place) + 1}" for place in places[:MOST_PLACES]]
        more = " and more" if len(places) > MOST_PLACES else ""
        raise PatchError(
            f"{quoted(found)} is there {'more than once' if more else f'{len(places)} times'}: "
            f"{', '.join(named)}{more}",
            advice="make `find` longer, so that it is in the file once",
        )
    return (text[: places[0]] + put + text[places[0] + len(found) :]).encode()


def _places(text: str, found: str) -> list[int]:
    """Return the first positions of a text, overlapping ones too: one more than are named."""
    places = list[int]()
    at = text.find(found)
    while at >= 0 and len(places) <= MOST_PLACES:
        places.append(at)
        at = text.find(found, at + 1)
    return places
