"""Knowledge of a repository: search, list, add and edit notes, and offer notes that wait for a person."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.stores import system_clock
from agent_workbench.core.errors import StorageError, UsageError, WorkbenchError
from agent_workbench.core.events import ActionResult, KnowledgeFound, OfferedNote
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxFilter, Reference, reference_to
from agent_workbench.core.knowledge import (
    KnowledgeNote,
    NoteUsage,
    auto_name,
    compose_note,
    name_in_path,
    note_name,
    note_path,
    read_head,
    usage_of,
)
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Permission

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.settings import Settings

DEFAULT_LIMIT, MOST_HITS = 3, 50
MOST_WAITING = 30
"""Offers that wait for a person at the same time: a client could write more than anybody reads."""
LABEL = "knowledge"
"""Label of the sessions in which offered notes wait."""


class ListedNote(Struct, frozen=True):
    """A note with its front matter; `problem` says why it cannot be read. `usage`: what tasks made of it."""

    name: str
    path: str
    title: str = ""
    type: str = ""
    domain: str = ""
    chars: int = 0
    problem: str = ""
    usage: NoteUsage | None = None


class OfferedNotes(Struct, frozen=True):
    """Notes that were offered: their paths, and the `reference` under which they wait (None: they are `written`)."""

    session: SessionId
    paths: tuple[str, ...]
    reference: Reference | None = None
    written: bool = False


async def search_knowledge(invocation: Invocation, words: str, limit: int = DEFAULT_LIMIT) -> KnowledgeFound:
    """Return excerpts of the notes that fit the words best; a `limit` below 1 means the default."""
    from agent_workbench.engine.notes import find_knowledge

    repo, settings = await trusted_repo(invocation)
    retriever = await asyncio.to_thread(repo.shared.retriever, settings, invocation.environ)
    knowledge = await asyncio.to_thread(repo.knowledge, settings, retriever)
    most = min(limit, MOST_HITS) if limit > 0 else DEFAULT_LIMIT
    try:
        return await find_knowledge(
            knowledge, settings.memory.dir, words, limit=most, max_tokens=most * 1_000, least_words=1
        )
    finally:
        await knowledge.close()
        await retriever.close()


async def list_notes(invocation: Invocation, *, stats: bool = False) -> tuple[ListedNote, ...]:
    """Return all notes by name, with `stats` also what the recorded tasks made of them; raise `StorageError`."""
    repo, settings = await trusted_repo(invocation)
    knowledge = await asyncio.to_thread(repo.knowledge, settings)
    usages = await _usages(repo, settings) if stats else {}
    listed = []
    for note in await knowledge.notes():
        path, head = note_path(settings.memory.dir, note.name), read_head(note.text)
        usage = usages.get(path, NoteUsage()) if stats else None
        listed.append(
            ListedNote(
                *(note.name, path, head.title, head.type, head.domain, len(note.text)),
                problem=note.problem,
                usage=usage,
            )
        )
    return tuple(listed)


async def read_note(invocation: Invocation, name: str) -> KnowledgeNote:
    """Return a note by its name or path; raise `UsageError` if there is none, `StorageError` if it cannot be read."""
    repo, settings = await trusted_repo(invocation)
    note = await (await asyncio.to_thread(repo.knowledge, settings)).read(name_in_path(name))
    if note is None:
        raise UsageError(f"there is no note {name!r}", advice="`agent knowledge list` names those there are")
    if note.problem:
        raise StorageError(f"the note {note.name} {note.problem}", advice="mend or remove the file")
    return note


async def add_note(
    invocation: Invocation, title: str, text: str, *, name: str = "", type: str = "", domain: str = ""
) -> str:
    """Write a new note of the user and return its path; an existing note is never replaced.

    Raises `UsageError`, `StorageError`, and `TrustError` in a process that a command of the agent started.
    """
    repo, settings = await trusted_repo(invocation)
    if not text.strip():
        raise UsageError("the note is empty", advice="give its text with --text, on standard input, or in the editor")
    chosen = note_name(name or title)
    note = KnowledgeNote(chosen, compose_note(title, text, type=type, domain=domain))
    await (await asyncio.to_thread(repo.knowledge, settings)).write(note, None)
    return note_path(settings.memory.dir, chosen)


async def change_note(invocation: Invocation, name: str, before: str, text: str) -> str:
    """Put the user's text in place of `before` in a note and return its path; raise as `add_note` does."""
    repo, settings = await trusted_repo(invocation)
    if not text.strip():
        raise UsageError("the note would be empty", advice="remove its file to remove the note")
    await (await asyncio.to_thread(repo.knowledge, settings)).write(KnowledgeNote(name, text), before)
    return note_path(settings.memory.dir, name)


def note_of(content: str, filename: str = "", *, type: str = "", domain: str = "", origin: str = "") -> OfferedNote:
    """Return a note as an MCP client gives it. Only the base name of `filename` counts; without one it gets a date.

    Raises `UsageError`.
    """
    if not content.strip():
        raise UsageError("content is empty", advice="give the text of the note")
    name = note_name(filename) if filename.strip() else auto_name(system_clock().now())
    return OfferedNote(name, compose_note("", content, type=type, domain=domain), origin)


async def park_notes(invocation: Invocation, notes: Sequence[OfferedNote], origin: str) -> OfferedNotes:
    """Offer notes in a session of their own, where they wait in the inbox; what policy or a rule allows is written.

    Raises `UsageError` for notes that cannot be offered, or while `MOST_WAITING` wait already, and `StorageError`.
    """
    from agent_workbench.api.sessions.offered_notes import close_notes, open_notes, settle_offer
    from agent_workbench.core.outcomes import Refused
    from agent_workbench.engine.note_offers import offer_notes
    from agent_workbench.subjects.inbox.calls import opened_inbox

    async with opened_inbox(invocation) as inbox:
        others = await inbox.items(InboxFilter(kind=Permission.KNOWLEDGE))
    if len(others) >= MOST_WAITING:
        raise UsageError(f"{len(others)} offers of notes wait already", advice="decide them: `agent inbox` lists them")
    repo, _ = await trusted_repo(invocation)
    session, recorder = await open_notes(repo, SessionQuery(fresh=True, label=LABEL))
    try:
        outcome = await offer_notes(session, notes, origin)
        if isinstance(outcome, Refused):
            raise UsageError(outcome.reason)
        finished = await settle_offer(session)
        written = finished is not None and finished.result is ActionResult.OK
        paths = tuple(note_path(session.settings.memory.dir, note.name) for note in notes)
        waiting = session.state.waiting
        reference = reference_to(session.state.session, waiting) if waiting is not None else None
        return OfferedNotes(session.state.session, paths, reference, written)
    finally:
        await close_notes(session, recorder)


async def _usages(repo: "RepoContext", settings: "Settings") -> dict[str, NoteUsage]:
    """Return what the sessions begun here made of each note, by its path; damaged sessions are left out."""
    store = await asyncio.to_thread(repo.sessions, settings)
    total: dict[str, Counter[str]] = {}
    for summary in await store.summaries():
        if not summary.ours or summary.problem or not summary.tasks:
            continue
        try:
            events = await store.read(summary.id)
        except WorkbenchError:
            continue
        for path, counts in (await asyncio.to_thread(usage_of, events)).items():
            total.setdefault(path, Counter()).update(counts)
    return {path: NoteUsage.of(counts) for path, counts in total.items()}
