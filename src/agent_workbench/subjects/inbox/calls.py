"""The inbox of a repository: proposals that wait in its sessions, and decisions about them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.stores import system_clock, user_name
from agent_workbench.core.errors import DecisionRefused, JournalError, PatchError, StorageError, TrustError, UsageError
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold_all
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import (
    EXPIRED,
    InboxChoice,
    InboxDecision,
    InboxFilter,
    InboxItem,
    InboxReceipt,
    Reference,
    inbox_order,
    may_expire,
    refusal,
    time_after,
    waiting_item,
)
from agent_workbench.core.live import Followed
from agent_workbench.core.patch.selection import HunkChoice, PartialDiff, partial_diff, selectable_parts
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.proposals import KEEP_CHANGES, Proposal, Verdict
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Permission
from agent_workbench.core.settings.worker import ParkedEnd, WorkerSettings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.subjects.inbox.view import item_remarks
from agent_workbench.subjects.inbox.wiring import repo_decisions
from agent_workbench.subjects.queue.wiring import is_withdrawn
from agent_workbench.views.gate.gate_bar import DECIDABLE, acts_for

if TYPE_CHECKING:
    from agent_workbench.bootstrap.shared_resources import SharedResources
    from agent_workbench.core.ports.machine import Clock
    from agent_workbench.core.ports.stores import Inbox, SessionStore

MAX_REASON_CHARS = 10_000
TAKE_UP_SECONDS = 3.0
"""Seconds to wait for the process that has the session open; at its gate it records a decision within one."""
_LOOK_SECONDS = 0.1
_COPY_LOOKS = 30
_LISTS = "`agent inbox` lists what waits"


class WaitingSession(Struct, frozen=True):
    """A session with a proposal at its gate; `state` is what the proposal is shown from."""

    item: InboxItem
    state: SessionState


async def repo_inbox(invocation: Invocation, shared: "SharedResources | None" = None) -> "RepoInbox":
    """Return the inbox of the repository around the folder of `invocation`; without `shared` its user closes it."""
    repo, settings = await trusted_repo(invocation, shared)
    sessions = await asyncio.to_thread(repo.sessions, settings)
    inbox = await asyncio.to_thread(repo_decisions, repo, settings, sessions)
    withdrawn = partial(is_withdrawn, repo, settings)
    return RepoInbox(sessions, inbox, system_clock(), user_name, settings.worker, withdrawn, repo.shared.close)


@asynccontextmanager
async def opened_inbox(invocation: Invocation) -> "AsyncIterator[RepoInbox]":
    """Yield what `repo_inbox` returns, and close it."""
    inbox = await repo_inbox(invocation)
    try:
        yield inbox
    finally:
        await inbox.close()


class RepoInbox:
    """Pending proposals in the sessions of one repository.

    `decider` names the person who decides; it may block.
    `worker` says for how long a proposal of an unattended session waits. Sessions that are `withdrawn` wait for nobody.
    """

    def __init__(
        self,
        sessions: "SessionStore",
        inbox: "Inbox",
        clock: "Clock",
        decider: Callable[[], str],
        worker: WorkerSettings | None = None,
        withdrawn: Callable[[SessionSummary], Awaitable[bool]] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._sessions = sessions
        self._inbox = inbox
        self._clock = clock
        self._decider = decider
        self._worker = worker or WorkerSettings()
        self._withdrawn = withdrawn
        self._close = close

    async def close(self) -> None:
        """Close what it was made with, such as connections."""
        if self._close is not None:
            await self._close()

    def now(self) -> str:
        """Return the time as journals write it."""
        return self._clock.now()

    async def items(self, wanted: InboxFilter | None = None) -> tuple[InboxItem, ...]:
        """Return what waits in the sessions begun here, in the order of `inbox_order`.

        Sessions that cannot be read are left out.
        """
        return tuple(each.item for each in await self.waiting() if wanted is None or wanted.selects(each.item))

    async def waiting(self) -> tuple[WaitingSession, ...]:
        """Return what `items` does, each with the state of its session."""
        return tuple(sorted(await self._all(), key=lambda each: inbox_order(each.item)))

    async def find(self, name: str) -> WaitingSession:
        """Return what is named by its id, its reference, its task, or the first or last letters of its session.

        Raises `UsageError` if nothing that waits has that name, or more than one thing.
        """
        found = [each for each in await self._all() if _has_name(each.item, name)]
        if not found:
            raise UsageError(f"no pending proposal is called {name!r}", advice=_LISTS)
        if len(found) > 1:
            names = ", ".join(each.item.id for each in found)
            raise UsageError(f"{len(found)} pending proposals are called {name!r}", advice=f"one of {names}")
        return found[0]

    async def follow_up(self, state: SessionState) -> Followed:
        """Return who has the session of this state open, and what the inbox says of what waits there."""
        summary = await self._sessions.summary(state.session)
        waiting = waiting_item(state, state.latest_events, summary.holder)
        if waiting is None:
            return Followed(summary.holder)
        item = self._expiring(await self._decided(waiting, summary), state)
        return Followed(summary.holder, item.decided, item_remarks(item, self.now()))

    async def decide(
        self, reference: Reference, choice: InboxChoice, objection: Callable[[WaitingSession], str] | None = None
    ) -> InboxReceipt:
        """Put a decision into the inbox and return what became of it; a process that has the session open records it.

        `objection` returns why this proposal is not decided by this person, empty if it is. Raises `DecisionRefused`
        then, and if the proposal is decided, changed or gone, `UsageError` for a choice that does not fit it,
        `TrustError` for a session from elsewhere, and in a process that a command of the agent started.
        """
        decided_by = await asyncio.to_thread(self._decider)
        summary = await self._summary(reference.session)
        events = await self._sessions.read(reference.session)
        waiting = await asyncio.to_thread(_waiting, summary, events)
        if waiting is None or waiting.item.reference != reference:
            raise DecisionRefused(refusal(events, reference), advice=_LISTS)
        if objection is not None and (why := objection(waiting)):
            raise DecisionRefused(why)
        taken = await asyncio.to_thread(_check, waiting, choice)
        decision = InboxDecision(
            reference,
            choice.verdict,
            choice.reason,
            taken.left if taken is not None else (),
            taken.result_sha if taken is not None else "",
            decided_by,
            self._clock.now(),
        )
        return await self._follow_up(await self._inbox.put(decision), summary.holder)

    async def reject_expired(self) -> tuple[InboxItem, ...]:
        """Reject what nobody decided in time, as `worker.park_for` and `worker.then` say; return it.

        A rejection is kept as any decision is: whoever opens the session records it, with the setting as who decided.
        """
        now, rejected = self._clock.now(), []
        for item in await self.items():
            reference = item.reference
            if reference is None or item.decided is not None or not item.expires or now < item.expires:
                continue
            reason = f"nobody decided within {self._worker.park_for}"
            expired = InboxDecision(
                reference, Verdict.REJECT, reason, made_by=f"park_for {self._worker.park_for}", made_at=now, by=EXPIRED
            )
            with contextlib.suppress(DecisionRefused):  # a person was first
                await self._inbox.put(expired)
                rejected.append(replace(item, decided=expired))
        return tuple(rejected)

    async def _follow_up(self, decision: InboxDecision, holder: str) -> InboxReceipt:
        """Wait for the process that has the session open; withdraw the decision if it came too late."""
        session = decision.reference.session
        if holder:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TAKE_UP_SECONDS):
                    await self._gone(decision)
        kept = decision in await self._inbox.pending(session)
        summary = await self._summary(session)
        events = await self._sessions.read(session)
        if summary.worker and not kept:  # it was taken there; the line that says so is yet to be copied
            for _ in range(_COPY_LOOKS):
                if decision.is_recorded_in(events) or not await self._waits(decision, summary, events):
                    break
                await asyncio.sleep(_LOOK_SECONDS)
                events = await self._sessions.read(session)
        if decision.is_recorded_in(events):
            return InboxReceipt(decision, recorded=True, holder=summary.holder)
        if (kept or summary.worker) and await self._waits(decision, summary, events):
            return InboxReceipt(decision, recorded=False, holder=summary.holder)
        await self._inbox.remove(decision)
        raise DecisionRefused(refusal(events, decision.reference), advice=_LISTS)

    async def _waits(self, decision: InboxDecision, summary: SessionSummary, events: tuple[Recorded, ...]) -> bool:
        waiting = await asyncio.to_thread(_waiting, summary, events)
        return waiting is not None and waiting.item.reference == decision.reference

    async def _gone(self, decision: InboxDecision) -> None:
        while decision in await self._inbox.pending(decision.reference.session):  # noqa: ASYNC110 - others remove it
            await asyncio.sleep(_LOOK_SECONDS)

    async def _all(self) -> list[WaitingSession]:
        found = []
        for summary in await self._sessions.summaries():
            if not summary.ours or not summary.waits:
                continue
            try:
                if self._withdrawn is not None and await self._withdrawn(summary):
                    continue
                events = await self._sessions.read(summary.id)
                waiting = await asyncio.to_thread(_waiting, summary, events)
                item = await self._decided(waiting.item, summary) if waiting is not None else None
            except (JournalError, StorageError):
                continue  # `agent sessions list` says what is wrong with it
            if waiting is not None and item is not None:
                found.append(replace(waiting, item=self._expiring(item, waiting.state)))
        return found

    async def _decided(self, item: InboxItem, summary: SessionSummary) -> InboxItem:
        """Return an item with its decision that is not recorded yet, and why others do not count."""
        pending = await self._inbox.pending(item.session)
        decided = next((each for each in pending if each.reference == item.reference), None)
        return replace(item, decided=decided, worker=summary.worker, refused=self._inbox.refused(item.session))

    def _expiring(self, item: InboxItem, state: SessionState) -> InboxItem:
        """Return an item with the time at which it is rejected, if it ever is; another machine has its own setting."""
        seconds, rejects = self._worker.park_seconds, self._worker.then is ParkedEnd.REJECT
        if seconds is None or not rejects or item.worker or not may_expire(item, state):
            return item
        return replace(item, expires=time_after(item.since, seconds))

    async def _summary(self, session: SessionId) -> SessionSummary:
        summary = await self._sessions.summary(session)
        if not summary.ours:
            raise TrustError(
                f"session {session} was not begun here, so nothing in it can be decided",
                advice=f"`agent replay {session}` shows it",
            )
        return summary


def _waiting(summary: SessionSummary, events: tuple[Recorded, ...]) -> WaitingSession | None:
    """Return what waits in a session."""
    state = fold_all(events)
    item = waiting_item(state, events, summary.holder)
    return WaitingSession(item, state) if item is not None else None


def _has_name(item: InboxItem, name: str) -> bool:
    """Return True if the name fits; a reference fits as long as its proposal waits, changed or not."""
    session, _, rest = name.partition("/")
    proposal = rest.partition("@")[0]
    if item.task and name == item.task:
        return True
    letters = item.session.startswith(session) or item.session.rpartition("-")[2].startswith(session)
    return bool(session) and letters and proposal in {"", item.proposal.id}


def _check(waiting: WaitingSession, choice: InboxChoice) -> PartialDiff | None:
    """Return what is taken of a diff (None: all of it); raise `UsageError` if the choice does not fit what waits."""
    proposal, run = waiting.item.proposal, waiting.state.run
    acts = acts_for(proposal, asked=run is not None and run.compaction_asked)
    fits = [act for act in acts if act in DECIDABLE]
    if str(choice.verdict) not in fits:
        what = f"{proposal.id}, a {proposal.kind}, cannot be {choice.verdict.past}"
        raise UsageError(what, advice=f"it can be decided with {', '.join(fits)}")
    _check_reason(choice.reason)
    if choice.verdict is not Verdict.APPROVE:
        if choice.hunks or choice.left:
            raise UsageError("--hunks goes with approve", advice="a rejection is of the whole proposal")
        return None
    taken = _partial_diff(proposal, choice) if choice.hunks or choice.left else None
    special = proposal.special if taken is None else taken.special
    if proposal.kind is Permission.DIFF and special and not choice.special:
        raise UsageError(
            f"{proposal.id} changes {', '.join(special)}", advice="look at these files; --special approves them too"
        )
    if proposal.plan is not None and special and not choice.special:
        raise UsageError(
            f"{proposal.id} has the acceptance commands {'; '.join(special)}",
            advice="look at these commands; --special approves them too",
        )
    return taken


def _check_reason(reason: str) -> None:
    """Raise `UsageError` for a reason that is too long, or holds bytes that are no text."""
    if len(reason) > MAX_REASON_CHARS:
        raise UsageError(f"the reason has {len(reason):,} characters", advice=f"{MAX_REASON_CHARS:,} are enough")
    try:
        reason.encode()
    except UnicodeEncodeError:
        raise UsageError("the reason is not valid UTF-8", advice="write it in UTF-8") from None


def _partial_diff(proposal: Proposal, choice: InboxChoice) -> PartialDiff:
    if not proposal.by_hunk or proposal.tool == KEEP_CHANGES:
        raise UsageError(f"{proposal.id} has no hunks to choose from", advice="approve or reject the whole of it")
    if choice.left:
        return _shown_part(proposal, choice)
    hunks = selectable_parts(proposal.patch)
    if unknown := [number for number in choice.hunks if not 1 <= number <= len(hunks)]:
        raise UsageError(f"{proposal.id} has no hunk {unknown[0]}", advice=f"its hunks are 1 to {len(hunks)}")
    left = (each for number, each in enumerate(hunks, 1) if number not in choice.hunks)
    without = HunkChoice(tuple(LeftOut(each.id, reason=choice.reason) for each in left))
    return partial_diff(proposal.patch, without, proposal.special)


def _shown_part(proposal: Proposal, choice: InboxChoice) -> PartialDiff:
    """Return the part that a screen showed as what stays; raise `DecisionRefused` if it is another one."""
    changed = DecisionRefused(f"{proposal.id} changed after it was shown", advice="look again")
    try:
        part = partial_diff(proposal.patch, HunkChoice(choice.left), proposal.special)
    except PatchError as error:
        raise changed from error
    if part.result_sha != choice.result_sha:
        raise changed
    if not part.taken:
        raise UsageError("nothing would be taken", advice="reject it instead")
    return part
