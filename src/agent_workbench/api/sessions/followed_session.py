"""Followed session: shown from its journal while another process may work on it, and decided through the inbox."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.sessions.offered_notes import settle_notes
from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.extras import needed_subject
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxChoice, reference_to
from agent_workbench.core.intents import ApproveProposal, Intent, Leave, RejectProposal, SkipProposal
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.proposals import OFFER_NOTES, Verdict, shown_sha
from agent_workbench.core.session_request import Invocation, OpenMode, SessionEnd, SessionRequest
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.intent_queue import answered
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.session.intents import answerable

if TYPE_CHECKING:
    from agent_workbench.bootstrap.shared_resources import SharedResources
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.subjects.inbox.calls import RepoInbox

LOOK_SECONDS = 1.0
"""Seconds between two looks at who has the session open and what is decided."""
ELSEWHERE = "this session is not open here: approve, reject or skip what waits, or open the session itself"
TOO_LONG = "it is too long to be shown in full, so it is decided in its own session only"
Verdicts = ApproveProposal | RejectProposal | SkipProposal


class FollowedSession:
    """A session that is read and never held. A decision is put into the inbox, where the session's writer takes it.

    Whoever works on the session, or does next, carries the decision out; nothing is executed here. Only notes that are
    offered beside any task are nobody's work: `settle` carries a decision about them out, and returns what it wrote.
    """

    def __init__(
        self,
        state: SessionState,
        sessions: "SessionStore",
        inbox: "RepoInbox",
        publisher: UpdatePublisher,
        events: EventFeed,
        settle: Callable[[SessionId], Awaitable[str]],
    ) -> None:
        self._state = state
        self._sessions = sessions
        self._inbox = inbox
        self._publisher = publisher
        self._events = events
        self._settle = settle
        self._left = asyncio.Event()
        publisher.show_state(state)

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Decide what waits, or leave; refuse any other intent."""
        if isinstance(intent, Leave):
            self._left.set()
            return answered(Accepted())
        if isinstance(intent, Verdicts):
            return asyncio.ensure_future(self._decide(intent))
        return answered(Refused(ELSEWHERE))

    async def run(self) -> SessionEnd:
        """Show what is recorded until the user leaves; raise `WorkbenchError` for a journal that cannot be followed."""
        work = [asyncio.ensure_future(each) for each in (self._left.wait(), self._follow(), self._watch())]
        farewell = ""
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        except WorkbenchError as error:
            farewell = error_text(error)
            raise
        finally:
            for each in work:
                each.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            self._publisher.end(farewell)
        return SessionEnd()

    async def look(self) -> None:
        """Publish who has the session open, and the decision about what waits that is not recorded yet."""
        self._publisher.show_followed(await self._inbox.follow_up(self._state))

    async def _follow(self) -> None:
        async with aclosing(self._sessions.follow(self._state.session, self._state.seq)) as events:
            async for recorded in events:
                self._state = fold(self._state, recorded)
                self._publisher.show_state(self._state)
                self._events.add(recorded)

    async def _watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _decide(self, intent: Verdicts) -> Outcome:
        waiting = answerable(self._state)
        if waiting is None or waiting.id != intent.proposal:
            return Refused("that proposal no longer waits, so your answer was not recorded; look at what waits now")
        if isinstance(intent, ApproveProposal) and intent.shown_sha != shown_sha(waiting):
            return Refused("the proposal changed after it was shown; look again")
        reference = reference_to(self._state.session, waiting)
        if reference is None:
            return Refused(TOO_LONG)
        try:
            receipt = await self._inbox.decide(reference, _choice(intent))
            taken_up = receipt.recorded or bool(receipt.holder)
            settled = "" if taken_up or waiting.tool != OFFER_NOTES else await self._settle(self._state.session)
            await self.look()
        except WorkbenchError as error:
            return Refused(error_text(error))
        from agent_workbench.subjects.inbox.view import receipt_text

        return Accepted(settled or receipt_text(receipt))


async def followed_if_held(invocation: Invocation, request: SessionRequest) -> SessionRequest:
    """Return the request to follow a session that is named and that another process here has open, else `request`."""
    if request.mode is not OpenMode.RESUME or not request.session or request.words:
        return request
    try:
        repo, settings = await trusted_repo(invocation)
        sessions = await asyncio.to_thread(repo.sessions, settings)
        held = await held_session(sessions, request.session)
    except WorkbenchError:
        return request  # to open it tells what is wrong
    return replace(request, mode=OpenMode.FOLLOW, session=held) if held else request


async def held_session(sessions: "SessionStore", name: str) -> SessionId | None:
    """Return the session named so if another process of this machine has it open, else None."""
    summary = await sessions.summary(await sessions.locate(name))
    return summary.id if summary.holder and not summary.worker else None


async def followed_session(invocation: Invocation, name: str, shared: "SharedResources | None" = None) -> LocalSession:
    """Return the session that `name` names, to be followed.

    Raises `TrustError` for a repository without trust, `UsageError` for an unknown session, and `JournalError`.
    """
    repo, settings = await trusted_repo(invocation, shared)
    sessions = await asyncio.to_thread(repo.sessions, settings)
    session = await sessions.locate(name)
    state = await asyncio.to_thread(fold_all, await sessions.read(session))
    updates, events = UpdateFeed(), EventFeed()
    events.begin(state.seq, partial(sessions.read, session, whole=True))
    with needed_subject():
        from agent_workbench.subjects.inbox.calls import repo_inbox

    inbox, publisher = await repo_inbox(invocation, repo.shared), UpdatePublisher(updates.publish)
    driver = FollowedSession(state, sessions, inbox, publisher, events, partial(settle_notes, invocation))
    await driver.look()
    return LocalSession(driver, updates, events)


def _choice(intent: Verdicts) -> InboxChoice:
    """Return the decision; the screen had unusual paths confirmed before it approved them."""
    match intent:
        case ApproveProposal():
            return InboxChoice(Verdict.APPROVE, special=True, left=intent.left, result_sha=intent.result_sha)
        case RejectProposal():
            return InboxChoice(Verdict.REJECT, intent.reason)
        case SkipProposal():
            return InboxChoice(Verdict.SKIP)
