"""The inbox: proposals that wait in any session, and decisions made outside the process that holds the session.

Items of the inbox from the state of a session: what waits there, since when, with which risk, and from where.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import Recorded, SessionResumed
from agent_workbench.core.ids import SESSION_ID, ProposalId, SessionId, TaskId
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.plan import Task, TaskOrigin, is_queued
from agent_workbench.core.proposals import POLICY, USER, Proposal, Verdict, is_too_long, shown_sha
from agent_workbench.core.proposed_action import Risk
from agent_workbench.core.settings import Permission
from agent_workbench.core.signed import SignedText
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import decisions_of, newest_steps

DIGEST_CHARS = 32
EXPIRED = f"{POLICY}worker.park_for"
"""Value of a decision's `by` if nobody decided in time."""
_REFERENCE = re.compile(rf"({SESSION_ID.pattern})/(P-[0-9]{{1,9}})@([0-9a-f]{{{DIGEST_CHARS}}})")


class Reference(Struct, frozen=True):
    """One proposal exactly as it was shown, written `SESSION/P-14@DIGEST`."""

    session: SessionId
    proposal: ProposalId
    digest: str

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}"

    @property
    def name(self) -> str:
        """The name of the proposal without its digest: a decision cannot be made with it."""
        return f"{self.session}/{self.proposal}"


class InboxItem(Struct, frozen=True):
    """A proposal that waits in a session; `task` is empty for a plan.

    `since` is the UTC time at which it was proposed or last replaced. `holder` names the process that has the session
    open, empty when none has. `decided` is a decision that is kept in the inbox and not recorded yet. `source` tells
    where the task comes from, empty for a task of the plan. `expires` is the UTC time after which a worker rejects it,
    empty for never. `worker` is the machine that has the session if it is another one, `refused` why decisions about it
    do not count.
    """

    session: SessionId
    task: TaskId
    proposal: Proposal
    since: str
    holder: str = ""
    decided: "InboxDecision | None" = None
    risk: Risk = Risk.LOW
    source: str = ""
    expires: str = ""
    worker: str = ""
    refused: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The item's name without its digest: a decision cannot be made with it."""
        return f"{self.session}/{self.proposal.id}"

    @property
    def reference(self) -> Reference | None:
        """The reference that a decision needs, None for a proposal too long to be shown in full."""
        return reference_to(self.session, self.proposal)


class InboxFilter(Struct, frozen=True):
    """Selection of inbox items; an empty field selects all."""

    session: str = ""
    task: str = ""
    kind: Permission | None = None

    def selects(self, item: InboxItem) -> bool:
        """Return True if the item fits every field that is set."""
        return (
            self.session in {"", item.session}
            and self.task in {"", item.task}
            and self.kind in {None, item.proposal.kind}
        )


class InboxChoice(Struct, frozen=True):
    """Decision of a person about a proposal.

    `hunks` are the numbers, from 1, of the approved ones (none: all); or `left` are the hunks and lines that are not
    approved, and `result_sha` is the `patch_hash` of what stays. `special`: the unusual paths of a diff were looked at
    and approved.
    """

    verdict: Verdict
    reason: str = ""
    hunks: tuple[int, ...] = ()
    special: bool = False
    left: tuple[LeftOut, ...] = ()
    result_sha: str = ""


class InboxReceipt(Struct, frozen=True):
    """Outcome of a decision: `recorded` in the journal, or kept for `holder` (empty: whoever opens the session)."""

    decision: "InboxDecision"
    recorded: bool
    holder: str = ""


class InboxDecision(Struct, frozen=True):
    """A decision made outside the process that holds the session, by a person or (`by`) by a policy, which rejects.

    `left` are the hunks and lines that are not approved (version 0.1 wrote the ids of hunks alone); `result_sha` is
    then the `patch_hash` of what stays. `made_by` and `made_at` (UTC, ISO 8601) say who decided, as far as the machine
    knows. A decision from another machine is `signed`: `made_by` is then the principal of its signature, and
    `repository` the name of the repository in the database, since a session of another one may have the same id.
    """

    reference: Reference
    verdict: Verdict
    reason: str = ""
    left: tuple[str | LeftOut, ...] = ()
    result_sha: str = ""
    made_by: str = ""
    made_at: str = ""
    by: str = USER
    signed: SignedText | None = None
    repository: str = ""

    @property
    def via(self) -> str:
        """The origin as the session's journal records it."""
        return f"inbox: {self.made_by}{', signed' if self.signed is not None else ''} at {self.made_at}"

    def is_recorded_in(self, events: Iterable[Recorded]) -> bool:
        """Return True if one of the events is this decision; one that is signed may have another name elsewhere."""
        return any(
            each.event.proposal_id == self.reference.proposal
            and each.event.signed == self.signed
            and (each.event.via == self.via or self.signed is not None)
            for each in decisions_of(events)
        )


def inbox_order(item: InboxItem) -> tuple[int, str, str]:
    """Return the sort key of the inbox: the highest risk first, then the longest wait."""
    return item.risk.rank, item.since, item.id


def time_after(time: str, seconds: int) -> str:
    """Return the UTC time that is so many seconds later, as journals write it; empty if that is no time."""
    try:
        return (datetime.fromisoformat(time) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (ValueError, OverflowError):
        return ""


def parse_reference(text: str) -> Reference:
    """Return the reference that `text` spells; raise `UsageError` for anything else."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not a reference",
            advice="`agent inbox show ID` prints it, as SESSION/P-14@DIGEST; copy it whole",
        )
    return Reference(SessionId(match[1]), ProposalId(match[2]), match[3])


def refusal(events: Sequence[Recorded], reference: Reference) -> str:
    """Return a sentence that says why a decision about the proposal no longer applies."""
    step = next((each for each in newest_steps(events) if each.proposal.id == reference.proposal), None)
    if step is None:
        return f"session {reference.session} has no proposal {reference.proposal}"
    last = step.decisions[-1] if step.decisions else None
    arrived = [each.seq for each in events if isinstance(each.event, SessionResumed) and each.event.arrived]
    if last is not None and (step.started is not None or not any(seq > last.seq for seq in arrived)):
        decided = f"{last.event.verdict.past} by {last.event.decider} at {last.time}"
        return f"{reference.proposal} was decided already: {decided}"
    if reference_to(reference.session, step.proposal) != reference:
        return f"{reference.proposal} is not what was shown: it was changed since, or the digest is wrong"
    return f"{reference.proposal} is not waiting any more"


def reference_to(session: SessionId, proposal: Proposal) -> Reference | None:
    """Return the reference to a proposal as it is now, None where it is too long to be shown in full."""
    return (
        None
        if is_too_long(proposal) or proposal.has_gaps
        else Reference(session, proposal.id, _digest(session, proposal))
    )


def _digest(session: SessionId, proposal: Proposal) -> str:
    """Return the first 128 bits of SHA-256 over everything that is shown of a proposal."""
    purpose = proposal.purpose or ""
    shown = (session, proposal.id, shown_sha(proposal), purpose, *proposal.paths, "", *proposal.special)
    told_apart = "".join(f"{len(part)}:{part}" for part in shown)
    return sha256(told_apart.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]


def waiting_item(state: SessionState, events: Sequence[Recorded], holder: str) -> InboxItem | None:
    """Return what waits in a session, None if nothing does that can be decided now.

    `events` are its newest, `holder` is who has it open. The merge of a task that is over waits only while
    somebody has the session open.
    """
    run, proposal = state.run, state.waiting
    if proposal is None or (run is not None and run.undoing is not None) or not (state.at_work or holder):
        return None
    at_gate = state.run_at_gate
    task = at_gate.definition if at_gate is not None else None
    return InboxItem(
        state.session,
        at_gate.task if at_gate is not None else TaskId(""),
        proposal,
        next(step.since for step in newest_steps(events) if step.proposal.id == proposal.id),
        holder,
        risk=proposal.risk(
            foreign=task is not None and task.origin is not TaskOrigin.LOCAL,
            confined=state.config is not None and state.config.sandbox.holds,
        ),
        source=_source(task, state.plan_path) if task is not None else "",
    )


def may_expire(item: InboxItem, state: SessionState) -> bool:
    """Return True for what an unattended session parked and nobody has open.

    Without a summary there may be no room for the next step, and a fork is some person's.
    """
    forked = state.run is not None and bool(state.run.fork)
    parked = state.config is not None and state.config.headless and not item.holder and not forked
    return parked and bool(item.task) and item.proposal.kind is not Permission.SUMMARY


def _source(task: Task, plan_path: str) -> str:
    """Return where a task comes from, empty for one of the plan."""
    origin = "" if task.origin is TaskOrigin.LOCAL else str(task.origin)
    return task.source or origin or (plan_path if is_queued(plan_path) else "")
