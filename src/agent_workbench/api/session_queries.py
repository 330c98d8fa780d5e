"""Queries about recorded sessions: find one, read or search its events, rebuild or re-ask its prompts."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.trusted_repo import check_person, redactor_of, trusted_repo
from agent_workbench.bootstrap.repo_context import Say
from agent_workbench.core.errors import JournalError, StorageError, UsageError, WorkspaceError
from agent_workbench.core.history.summaries import SessionQuery, SessionSummary
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.version import __version__
from agent_workbench.views.record_search import RecordMatches, search_events, subject_text

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.history.replay_marks import ReproducedPrompt
    from agent_workbench.core.ids import SessionId, TaskId
    from agent_workbench.core.model import Message
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.repo.workspace import FileStat
    from agent_workbench.views.receipt import ReceiptView


async def named_session(invocation: Invocation, session: str) -> "tuple[SessionStore, SessionId]":
    """Return the repo's session store and the session named so (the newest for no name); raise `UsageError`."""
    repo, settings = await trusted_repo(invocation)
    sessions = await asyncio.to_thread(repo.sessions, settings)
    return sessions, await sessions.locate(session)


async def stopped_session(invocation: Invocation, session: str) -> "tuple[SessionId, TaskId]":
    """Return the session to resume and its task: the named one, or the newest that stopped in a task.

    Raises `UsageError` if there is none or its task is over, `TrustError` for a session from elsewhere.
    """
    repo, settings = await trusted_repo(invocation)
    sessions = await asyncio.to_thread(repo.sessions, settings)
    named = await sessions.find(SessionQuery(session)) if session else None
    for each in await sessions.summaries():
        wanted = each.id == named if named is not None else each.ours and not each.holder
        if wanted and each.status is TaskStatus.IN_PROGRESS and not each.problem:
            return each.id, each.tasks[-1]
    if named is None:
        raise UsageError("no session stopped in a task", advice="`agent sessions list` shows what there is")
    advice = f"`agent replay {named}` shows it, `agent sessions verify {named}` tells if it is whole"
    raise UsageError(f"session {named} has no task to go on with", advice=advice)


async def named_chat(invocation: Invocation, session: str) -> "SessionId":
    """Return the chat named so; raise `UsageError` for a session that is none."""
    sessions, found = await named_session(invocation, session)
    if not any(each.id == found and each.chat for each in await sessions.summaries()):
        raise UsageError(f"session {found} is no chat", advice="`agent sessions` lists them; `agent chat` begins one")
    return found


async def recorded_events(invocation: Invocation, session: str, *, whole: bool = False) -> "tuple[Recorded, ...]":
    """Return the events of a session, long outputs as digests or `whole`.

    Raises `JournalError` for a damaged journal.
    """
    sessions, found = await named_session(invocation, session)
    return await sessions.read(found, whole=whole)


async def exported_events(invocation: Invocation, session: str, *, whole: bool = False) -> "tuple[Recorded, ...]":
    """Return a session's events without the secrets of the current environment, for documents that others read.

    Variables set after the recording are redacted too. Long outputs are digests or `whole`. Raises `JournalError`.
    """
    from agent_workbench.core.events.codec import change_texts

    repo, settings = await trusted_repo(invocation)
    redact, events = (
        redactor_of(repo.invocation, settings).redact,
        await recorded_events(invocation, session, whole=whole),
    )
    return await asyncio.to_thread(
        lambda: tuple(replace(each, event=change_texts(each.event, redact)) for each in events)
    )


async def prompt_receipt(
    invocation: Invocation, session: str, number: int
) -> "tuple[ReceiptView, tuple[Message, ...]]":
    """Return the receipt of a session's prompt (from 1; 0: the newest) and its messages, built again from the journal.

    Raises `UsageError` for an unknown prompt.
    """
    from agent_workbench.core.fold import fold_all
    from agent_workbench.engine.rerun import messages_of, prompts_of
    from agent_workbench.views.receipt import count_prompts, view_receipt

    events = await recorded_events(invocation, session)
    state = fold_all(events)
    receipt = view_receipt(state, number)
    if receipt is None:
        count = count_prompts(state)
        known = "it has none yet" if not count else "it has one" if count == 1 else f"its prompts are 1 to {count}"
        what = f"session {state.session} has no prompt {number}" if number else f"session {state.session} has no prompt"
        raise UsageError(f"{what}; {known}", advice="`agent sessions show` prints what happened in it")
    asked = next(each for each in prompts_of(events) if each.number == receipt.number)
    return receipt, messages_of(asked)


async def replayed_events(
    invocation: Invocation, session: str, at: int, *, exported: bool = False
) -> "tuple[Recorded, ...]":
    """Return the events of a session to be replayed from event `at`; raise `UsageError` if there is no such event."""
    events = await (exported_events(invocation, session) if exported else recorded_events(invocation, session))
    if at >= max(1, len(events)):
        raise UsageError(f"the session has no event {at}", advice=f"its events are 0 to {len(events) - 1}")
    return events


async def rerun_session(invocation: Invocation, session: str) -> "Iterator[ReproducedPrompt]":
    """Return the prompts of a session; each is built again and compared with its record when it is iterated."""
    from agent_workbench.engine.rerun import rerun

    events = await recorded_events(invocation, session)
    return (_with_version(events, prompt) for prompt in rerun(events))


def _with_version(events: "Sequence[Recorded]", prompt: "ReproducedPrompt") -> "ReproducedPrompt":
    """Add a remark to a difference if another version of the workbench, with other prompt texts, made the record."""
    from agent_workbench.core.events import SessionStarted

    then = next((each.event.product_version for each in events if isinstance(each.event, SessionStarted)), __version__)
    if prompt.difference is None or then == __version__:
        return prompt
    return replace(prompt, remark=f"recorded by version {then}, this is {__version__}")


async def session_against(
    invocation: Invocation, session: str, named: str, say: Say
) -> "AsyncGenerator[ReproducedPrompt]":
    """Send every prompt of a session to another model (a GGUF file, an address, or the name of an endpoint).

    Raises `UsageError` for an unknown model, `ModelError`.
    """
    from agent_workbench.engine.rerun import rerun_with_model
    from agent_workbench.subjects.models.calls import model_named

    events = await recorded_events(invocation, session)
    repo, settings = await trusted_repo(invocation)
    model = await model_named(invocation, named, say)
    try:
        async with aclosing(rerun_with_model(events, model, repo.repository.recorded_files, settings)) as prompts:
            async for prompt in prompts:
                yield prompt
    finally:
        await model.close()


async def session_summaries(invocation: Invocation) -> "tuple[SessionSummary, ...]":
    """Return the repo's sessions, newest first."""
    repo, settings = await trusted_repo(invocation)
    return await (await asyncio.to_thread(repo.sessions, settings)).summaries()


async def take_over_sessions(invocation: Invocation, *, leave: bool) -> str:
    """Continue the sessions and worktrees of a repository that was copied here and is gone, and return its path.

    With `leave` they stay where they are. Raises `TrustError` in a command of the agent, `RepoError` if there are none.
    """
    from agent_workbench.bootstrap.repo_context import git_repository

    await check_person()
    repository = await asyncio.to_thread(git_repository, invocation)
    return await repository.take_over(leave=leave)


async def session_names(invocation: Invocation) -> "tuple[SessionId, ...]":
    """Return the ids of the sessions of the repository, newest first; their journals are not read."""
    repo, settings = await trusted_repo(invocation)
    sessions = await asyncio.to_thread(repo.sessions, settings)
    return tuple(await sessions.origins())


async def files_between(repo: "RepoContext", before: str, after: str) -> "tuple[FileStat, ...] | None":
    """Return the files that differ between two trees or commits, None if one is unknown or was pruned."""
    try:
        return await repo.repository.diff_stat(before, after) if before and after else None
    except WorkspaceError:
        return None  # a session from elsewhere, or its objects were pruned


class FoundInSession(Struct, frozen=True):
    """Matches in one session; `problem` says why it could not be read (empty: it could)."""

    session: SessionSummary
    found: RecordMatches
    problem: str = ""


async def search_sessions(invocation: Invocation, asked: str) -> AsyncIterator[FoundInSession]:
    """Yield the sessions with a match or a problem, newest first.

    Events that a fork shares with its parent are searched in the parent alone.
    """
    repo, settings = await trusted_repo(invocation)
    store = await asyncio.to_thread(repo.sessions, settings)
    sessions = await store.summaries()
    names = {session.id for session in sessions}
    for session in sessions:
        copied = session.parent_seq if session.parent in names else None
        try:
            events = await store.read(session.id, whole=True)
            found = await asyncio.to_thread(search_events, events[0 if copied is None else copied + 1 :], asked)
        except (JournalError, StorageError) as error:
            yield FoundInSession(session, RecordMatches(asked), str(error))
            continue
        if found.count:
            yield FoundInSession(session, found)


async def closest_sessions(invocation: Invocation, asked: str, limit: int) -> tuple[SessionSummary, ...]:
    """Return at most `limit` sessions that are about some of the words, best first, for words that none holds."""
    from agent_workbench.bootstrap.shared_resources import rank_texts

    repo, settings = await trusted_repo(invocation)
    store = await asyncio.to_thread(repo.sessions, settings)
    sessions, texts = [], []
    for session in await store.summaries():
        with suppress(JournalError, StorageError):  # the search has reported it
            texts.append(await asyncio.to_thread(subject_text, await store.read(session.id, whole=True)))
            sessions.append(session)
    return tuple(sessions[number] for number in await asyncio.to_thread(rank_texts, texts, asked, limit))
