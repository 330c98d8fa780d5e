"""Offers of notes and proposed plans in sessions of their own: what was decided about them is carried out."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import say_nothing, trusted_repo
from agent_workbench.core.errors import StorageError
from agent_workbench.core.events import ActionFinished, ActionResult, SessionLeft
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.proposals import OFFER_NOTES, PROPOSE_PLAN
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.state.steps import newest_steps

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.engine.recorder import Recorder
    from agent_workbench.engine.runtime.session_context import SessionContext


async def settle_notes(invocation: Invocation, session: SessionId) -> str:
    """Carry out a decision about notes or a plan that wait in a session nobody has open; return what was written.

    Empty if something else waits there, or nothing was approved. Raises `StorageError` if it cannot be written; it
    waits again then.
    """
    from agent_workbench.core.fold import fold_all

    repo, settings = await trusted_repo(invocation)
    store = await asyncio.to_thread(repo.sessions, settings)
    state = await asyncio.to_thread(fold_all, await store.read(session))
    if state.gate.waiting is None or state.gate.tool not in {PROPOSE_PLAN, OFFER_NOTES} or state.unfinished:
        return ""
    opened, recorder = await open_notes(repo, SessionQuery(name=session))
    try:
        finished = await settle_offer(opened)
    finally:
        await close_notes(opened, recorder)
    if finished is not None and finished.result is ActionResult.REFUSED:
        raise StorageError(f"nothing was written: {finished.observation}", advice="approve them again after that")
    return finished.observation if finished is not None else ""


async def settle_offer(session: "SessionContext") -> ActionFinished | None:
    """Propose and decide what waits, by the inbox, policy and rules; return the end of what it wrote, if anything."""
    from agent_workbench.engine.executor import perform
    from agent_workbench.engine.flow import Decide, ProposeNotes, RunHook, TakePlan, WriteNotes, next_move
    from agent_workbench.engine.policy import ruling
    from agent_workbench.engine.proposals import decide
    from agent_workbench.engine.session.inbox import record_pending

    begun = session.state.seq
    while isinstance(move := next_move(session.state), Decide | ProposeNotes | RunHook | TakePlan | WriteNotes):
        before = session.state.seq
        if isinstance(move, Decide):
            await record_pending(session)
            verdict = ruling(session.state, move.proposal)
            if session.state.seq == before and verdict is not None:
                await decide(session, move.proposal, verdict.verdict, verdict.by, verdict.reason)
            elif verdict is None and session.state.seq == before:
                session.hooks.tell_waiting(move.proposal, session.state)
                await session.hooks.finish()
                break
        else:
            await perform(session, move)
        if session.state.seq == before:
            break
    results = (step.result for step in newest_steps(session.state.events))
    return next((each.event for each in results if each is not None and each.seq > begun), None)


async def open_notes(repo: "RepoContext", query: SessionQuery) -> "tuple[SessionContext, Recorder]":
    """Open a session in which notes are offered, with what the repository is trusted for."""
    from agent_workbench.api.sessions.session_handle import EventFeed
    from agent_workbench.api.sessions.session_opening import open_session
    from agent_workbench.engine.runtime.publisher import UpdatePublisher

    trusted = await asyncio.to_thread((await repo.trust()).is_trusted)
    publisher = UpdatePublisher(lambda _: None)
    return await open_session(repo, query, publisher, EventFeed(), trusted=trusted, say=say_nothing)


async def close_notes(session: "SessionContext", recorder: "Recorder") -> None:
    """Close such a session."""
    try:
        await session.record(SessionLeft("ended"))
    finally:
        try:
            await session.close()
        finally:
            await recorder.close()
