"""Export of a recorded session as markdown, JSON or pictures, and new files that overwrite nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.session_queries import exported_events, files_between, replayed_events
from agent_workbench.api.sessions.session_opening import replayed_session
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.ports.session_host import SessionHandle
    from agent_workbench.core.state.session_state import SessionState
    from agent_workbench.tui.pictures import DrawingApp, Lines
    from agent_workbench.views.reports.task_report import TaskReport


MOST_PICTURES = 100

LEAST_SIZE, MOST_SIZE = (60, 16), (400, 150)

Size = tuple[int, int]


class ExportFormat(StrEnum):
    """Formats of a document about a session."""

    MARKDOWN = "markdown"
    JSON = "json"


async def export_session(invocation: Invocation, session: str, form: ExportFormat, task: str = "") -> str:
    """Return a session as one document, the Markdown about one `task` if named; raise `UsageError`, `JournalError`."""
    from agent_workbench.core.fold import fold_all
    from agent_workbench.subjects.forge.view import pull_request
    from agent_workbench.views.reports.json_documents import session_document

    events = await exported_events(invocation, session, whole=form is ExportFormat.JSON)
    state = fold_all(events)
    repo, _ = await trusted_repo(invocation)
    accounts = [each async for each in _accounts(repo, state)]
    if form is ExportFormat.MARKDOWN:
        return pull_request(state, [each for each in accounts if task in {"", each.run.task}])
    return json.dumps(session_document(state, events, accounts), ensure_ascii=True, indent=1) + "\n"


async def write_export(invocation: Invocation, session: str, form: ExportFormat, path: Path) -> None:
    """Write a session into a new file; raises what `export_session` and `write_new` do."""
    await write_new(path, await export_session(invocation, session, form))


async def write_new(path: Path, document: str) -> None:
    """Write a document into a new file; raise `StorageError` if it exists or cannot be written."""
    from agent_workbench.system.atomic_files import FileChanged, write_atomically

    try:
        await asyncio.to_thread(write_atomically, path, document.encode(), None)
    except FileChanged as error:
        raise StorageError(f"{path} is there already", advice="move it away, or say another name") from error


async def keep_picture(folder: Path, name: str, picture: str) -> str:
    """Write an SVG into a new file of `folder`, `name` with a number if needed; return the file's name."""
    for number in range(1, MOST_PICTURES + 1):
        file = f"{name}.svg" if number == 1 else f"{name}-{number}.svg"
        if not await asyncio.to_thread((folder / file).exists):
            await write_new(folder / file, picture)
            return file
    raise StorageError(f"there are {MOST_PICTURES} pictures of this moment already", advice="move them away")


async def _accounts(repo: "RepoContext", state: "SessionState") -> "AsyncIterator[TaskReport]":
    from agent_workbench.views.reports.task_report import task_report

    commits = repo.repository.stored_commits()
    for run in state.runs:
        merged_into = await commits.holder(run.commit) if run.commit else ""
        yield task_report(run, await files_between(repo, run.workspace.base, run.tree), merged_into)


class Drawn:
    """Screen of a replay, drawn after any of its events."""

    def __init__(self, events: "Sequence[Recorded]", replay: "SessionHandle", app: "DrawingApp") -> None:
        self.events = events
        self._replay = replay
        self._app = app

    async def at(self, seq: int, *, live: bool = False) -> "Lines":
        """Return the lines of the screen after event `seq`, without the replay bar if `live`."""
        from agent_workbench.core.intents import GoToEvent

        await self._replay.submit(GoToEvent(seq))
        async with aclosing(self._replay.live()) as updates:
            update = await anext(updates)
        shown = replace(update, live=replace(update.live, replay=None, decidable=True)) if live else update
        return await self._app.draw(shown)

    async def svg(self, seq: int, *, live: bool = False) -> str:
        """Return the SVG of the lines that `at` returns."""
        from agent_workbench.tui.pictures import to_svg

        event = self.events[seq]
        return to_svg(await self.at(seq, live=live), f"session {self.session} at event {seq}, {event.time[:19]}Z")

    @property
    def session(self) -> str:
        """The session's name."""
        from agent_workbench.core.events import SessionStarted

        return next((each.event.session for each in self.events if isinstance(each.event, SessionStarted)), "")


@asynccontextmanager
async def _drawn(invocation: Invocation, session: str, size: Size, at: int = 0) -> AsyncIterator[Drawn]:
    _check(size)
    events = await replayed_events(invocation, session, at, exported=True)
    from agent_workbench.tui.pictures import drawing

    async with drawing(size) as app:
        yield Drawn(events, await replayed_session(events, at=at), app)


def _check(size: Size) -> None:
    if not all(least <= given <= most for least, given, most in zip(LEAST_SIZE, size, MOST_SIZE, strict=True)):
        advice = "{}x{} to {}x{} can be drawn".format(*LEAST_SIZE, *MOST_SIZE)
        raise UsageError(f"{size[0]}x{size[1]} is no size for the screen", advice=advice)


async def picture(invocation: Invocation, session: str, at: int | None, size: Size) -> str:
    """Return the screen of a session after event `at` (None: the last) as an SVG.

    Raises `UsageError`, `JournalError`.
    """
    async with _drawn(invocation, session, size, at or 0) as drawn:
        return await drawn.svg(len(drawn.events) - 1 if at is None else at)


async def write_gates(invocation: Invocation, session: str, size: Size, folder: Path) -> list[Path]:
    """Write an SVG of each gate of a session into `folder`, which is created if needed; return the files.

    Raises `StorageError` (also if a file exists), `UsageError`, `JournalError`.
    """

    from agent_workbench.system.atomic_files import make_directories, storage_error
    from agent_workbench.views.timeline import pictured_gates

    async with _drawn(invocation, session, size) as drawn:
        gates = list(pictured_gates(drawn.events))
        pictures = [(folder / f"{gate.name}.svg", await drawn.svg(gate.seq, live=True)) for gate in gates]
    try:
        await asyncio.to_thread(make_directories, folder)
    except OSError as error:
        raise storage_error(f"{folder} cannot be made", error) from error
    for path, svg in pictures:
        await write_new(path, svg)
    return [path for path, _ in pictures]
