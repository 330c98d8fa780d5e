"""Consultants: one call for every front end, the log of a label, pass rates, and which endpoints answer."""

import asyncio
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing, trusted_repo
from agent_workbench.bootstrap.repo_context import RepoContext, Say, find_repo
from agent_workbench.core.consult_requests import (
    ROOT,
    ConsultAnswer,
    ConsultRequest,
    EndpointTier,
    LogEntry,
    PassRate,
    checked_request,
    pass_rates,
)
from agent_workbench.core.errors import LockedError, StorageError, WorkbenchError
from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.live import Streaming
from agent_workbench.core.ports.stores import HeldSession
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.core.history.summaries import SessionSummary
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.state.work import Consultation
    from agent_workbench.engine.recorder import Recorder
    from agent_workbench.engine.runtime.session_context import SessionContext


UNLABELLED = "consultations"
"""Label of the journal for calls without one; they know nothing of each other."""
MOST_SESSIONS = 50
TIER_SECONDS = 1.8


class TierLine(Struct, frozen=True):
    """An endpoint, its kind, and why it does not answer now (empty: it does)."""

    name: str
    tier: EndpointTier
    problem: str = ""


class TierReport(Struct, frozen=True):
    """Endpoints that answer now; `level` is the most capable kind among them, or `none`."""

    level: str
    endpoints: tuple[TierLine, ...]


def show_nothing(_: Streaming) -> None:
    """Ignore an answer that arrives."""


async def consult(
    invocation: Invocation,
    request: ConsultRequest,
    *,
    report: Callable[[Streaming], None] = show_nothing,
    say: Say = say_nothing,
) -> ConsultAnswer:
    """Ask a consultant in a session of its own, found by the request's label; `report` gets the answer as it arrives.

    Raises `UsageError`, `ConfigError`, `ModelError`, and `RepoError` outside of a repository. Cancelling it stops the
    answer. A journal that cannot be written is told in the answer's remarks.
    """
    from agent_workbench.engine.consult_context import ConsultContext
    from agent_workbench.engine.consultation import consult as ask

    checked_request(request)
    repo = await find_repo(invocation)
    asked = await asyncio.to_thread(_at_root, request, repo.root, invocation.folder)
    opened = await _open(repo, asked.session or UNLABELLED, say)
    session = opened.session
    try:
        past = await _entries(repo, session.settings, asked.session, but=session.state.session)
        context = ConsultContext(
            session.ports,
            session.settings,
            lambda: session.state,
            session.record,
            await session.ports.workspaces.checkout_files(),
            past=past,
            show=report,
        )
        answer = await ask(context, asked)
    finally:
        await opened.close()
    return replace(answer, remarks=(*answer.remarks, *opened.remark, *await _offer(invocation, asked, answer)))


async def _offer(invocation: Invocation, request: ConsultRequest, answer: ConsultAnswer) -> tuple[str, ...]:
    """Offer the notes in an answer, each to be taken or left by a person; return a remark about them."""
    from agent_workbench.engine.consultation import proposed_notes
    from agent_workbench.subjects.knowledge.calls import park_notes

    notes = proposed_notes(request.skill, answer.text)
    if not notes:
        return ()
    try:
        offered = await park_notes(invocation, notes, f"{request.skill} of {request.session}")
    except WorkbenchError as error:
        return (f"its notes are not offered: {error}",)
    many = counted_text(len(notes), "note")
    return (f"{many} written" if offered.written else f"{many} waiting for you: `agent inbox` shows them",)


async def session_log(invocation: Invocation, label: str) -> tuple[LogEntry, ...]:
    """Return the consultations under a label, or in the session with this id, oldest first."""
    repo, settings = await trusted_repo(invocation)
    return await _entries(repo, settings, label)


async def consult_stats(invocation: Invocation) -> tuple[PassRate, ...]:
    """Return the pass rate of each model for each consultant, over all sessions of the repository."""
    repo, settings = await trusted_repo(invocation)
    store = await asyncio.to_thread(repo.sessions, settings)
    found = [each for each in await store.summaries() if each.consultations]
    return pass_rates(
        (each.asked.skill, attempt)
        for each in await _consultations(store, found)
        if each.answered is not None
        for attempt in each.answered.attempts
    )


async def tier(invocation: Invocation, say: Say = say_nothing) -> TierReport:
    """Return which endpoints of the settings answer now, within two seconds."""
    from agent_workbench.core.diagnostics import endpoint_lines, tier_of

    repo, settings = await repo_or_folder(invocation, say)
    names = tuple(dict.fromkeys(line.name for line in endpoint_lines(settings, repo.invocation.environ)))
    registry = await asyncio.to_thread(repo.endpoints, settings, say_nothing)

    async def look(name: str) -> TierLine:
        try:
            async with asyncio.timeout(TIER_SECONDS):
                model = await asyncio.to_thread(registry.looked_at, name)
                if model is not None:  # a file of our own is served with the first request
                    await model.observe()
        except TimeoutError:
            return TierLine(name, tier_of(settings, name), f"it did not answer within {TIER_SECONDS:g} s")
        except WorkbenchError as error:
            return TierLine(name, tier_of(settings, name), str(error))
        return TierLine(name, tier_of(settings, name))

    try:
        lines = await asyncio.gather(*map(look, names))
    finally:
        await registry.close()
    answering = {line.tier for line in lines if not line.problem}
    level = next((each.value for each in reversed(EndpointTier) if each in answering), "none")
    return TierReport(level, tuple(lines))


def _at_root(request: ConsultRequest, root: Path, folder: Path) -> ConsultRequest:
    """Return the request with the root as the repository names it, and paths in `folder` relative to the root; blocks.

    A path elsewhere stays as it is, and is refused when it is read.
    """

    def below(path: str) -> str:
        named = Path(os.path.normpath(folder / path)) if path else root
        inside = (each for each in (root, root.resolve()) if named != each and named.is_relative_to(each))
        return next((named.relative_to(each).as_posix() for each in inside), path)

    def value(name: str, text: str) -> str:
        if name == ROOT:
            return str(root) if Path(text).is_absolute() and Path(text).resolve() == root.resolve() else text
        return below(text) if name.endswith("_path") else text

    fields = tuple((name, value(name, text)) for name, text in request.fields)
    return replace(request, fields=fields, files=tuple(map(below, request.files)))


class OpenedLabel(Struct, frozen=True):
    """Session that is open for one call, and a remark if it is not written; `store` is where it is kept."""

    session: "SessionContext"
    recorder: "Recorder"
    store: "SessionStore | None" = None
    held: "HeldSession | None" = None
    remark: tuple[str, ...] = ()

    async def close(self) -> None:
        """Close it; a new session in which nothing was asked is removed."""
        from agent_workbench.core.events import SessionLeft

        try:
            await self.session.record(SessionLeft("ended"))
        except WorkbenchError:
            pass  # the answer, or its error, is what the caller wants to know of
        finally:
            try:
                await self.session.close()
            finally:
                await self.recorder.close()
                if self.store is not None and self.held is not None and not self.session.state.consultations:
                    await self.store.discard(self.held)


async def _open(repo: RepoContext, label: str, say: Say) -> OpenedLabel:
    """Open the session of a label; one that cannot be written is kept in memory, with a remark."""
    from agent_workbench.api.sessions.session_handle import EventFeed
    from agent_workbench.api.sessions.session_opening import open_session
    from agent_workbench.core.history.summaries import SessionQuery
    from agent_workbench.engine.runtime.publisher import UpdatePublisher

    trusted = await asyncio.to_thread((await repo.trust()).is_trusted)
    publisher, query = UpdatePublisher(lambda _: None), SessionQuery(label=label)
    opening = partial(open_session, repo, query, publisher, EventFeed(), trusted=trusted, say=say)
    try:
        store = await asyncio.to_thread(lambda: repo.sessions(repo.settings(trusted=trusted)))
        held = await store.open(query)
        try:
            return OpenedLabel(*await opening(held=held), store, held)
        except BaseException:
            await store.discard(held)
            raise
    except (StorageError, LockedError) as error:
        remark = f"this consultation is not recorded: {error}"
        return OpenedLabel(*await opening(held=unkept_session()), remark=(remark,))


async def _entries(repo: RepoContext, settings: "Settings", label: str, but: str = "") -> tuple[LogEntry, ...]:
    """Return the log under a label, without the session `but`; what cannot be read is left out."""
    if not label:
        return ()
    try:
        store = await asyncio.to_thread(repo.sessions, settings)
        fitting = [
            each for each in await store.summaries() if each.ours and each.id != but and label in {each.label, each.id}
        ]
        entries = [each.entry for each in await _consultations(store, fitting[:MOST_SESSIONS])]
        entries += [entry for each in fitting if each.id == label for entry in await _task_entries(store, each)]
        return tuple(sorted(entries, key=lambda each: each.timestamp))
    except WorkbenchError:
        return ()


async def _task_entries(store: "SessionStore", session: "SessionSummary") -> tuple[LogEntry, ...]:
    """Return the log of the tasks of a session."""
    from agent_workbench.core.events import SessionStarted
    from agent_workbench.engine.consultation import task_entries

    if not session.tasks:
        return ()
    events = await store.read(session.id)
    root = next((each.event.repo for each in events if isinstance(each.event, SessionStarted)), "")
    return tuple(task_entries(events, session.id, root))


async def _consultations(store: "SessionStore", sessions: "Iterable[SessionSummary]") -> "list[Consultation]":
    """Return the consultations of these sessions (newest first), oldest first; damaged ones are left out."""
    from agent_workbench.core.fold import fold_all

    found: list[Consultation] = []
    for each in sessions:
        try:
            state = fold_all(await store.read(each.id))
        except WorkbenchError:
            continue
        found += state.consultations
    return sorted(found, key=lambda each: each.time)


class UnkeptJournal:
    """Implements `core.ports.stores.Journal`; nothing outlives it."""

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Return the event as recorded."""
        return Recorded(seq, time, event)

    async def close(self) -> None:
        """Do nothing."""


def unkept_session() -> HeldSession:
    """Return a new session that is not written anywhere."""
    from agent_workbench.adapters.local_machine import SystemIds

    return HeldSession(SystemIds().session(), UnkeptJournal())
