"""Signed claims of other machines about a journal: its heads, and the decisions of their persons."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import ActionDecided, Recorded, SessionStarted
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxDecision, parse_reference, reference_to
from agent_workbench.core.proposals import USER, Proposal, Verdict
from agent_workbench.core.signed import SignedPurpose, SignedText, signed_message
from agent_workbench.core.state.steps import decisions_of

MOST_NAME_CHARS = 200
_NONE = "its text is no decision"


def signed_decisions(events: Iterable[Recorded]) -> tuple[tuple[ActionDecided, SignedText], ...]:
    """Return the decisions that a person signed on another machine."""
    found = (each.event for each in decisions_of(events))
    return tuple((each, each.signed) for each in found if each.signed is not None)


def contradictions(session: SessionId, events: Sequence[Recorded]) -> Mapping[int, str]:
    """Return the numbers of the events that record another decision than the text that was signed, with the reason.

    What a fork copied from its parent was decided in the parent, or in a parent of that.
    """
    found: dict[int, str] = {}
    starts = (each.event.parent_seq for each in events if isinstance(each.event, SessionStarted))
    copied = next((seq for seq in starts if seq is not None), -1)
    for each in decisions_of(events):
        if each.event.signed is not None:
            own = session if each.seq > copied else None
            if why := _contradiction(own, each.versions, each.event, each.event.signed.text):
                found[each.seq] = f"event {each.seq}: the decision on {each.event.proposal_id} {why}"
    return found


def _contradiction(session: SessionId | None, versions: Sequence[Proposal], event: ActionDecided, text: str) -> str:
    decision = read_decision(text)
    if isinstance(decision, str):
        return f"is not the one that was signed: {decision}"
    named = decision.reference
    if session not in {None, named.session} or named.proposal != event.proposal_id:
        return f"is not the one that was signed: that is about {named.name}"
    if not _same_verdict(decision, event):
        return f"is not the one that was signed: {event.verdict} for {decision.verdict}"
    shown = [reference_to(named.session, each) for each in versions]
    if named not in (shown if decision.left else shown[-1:]):
        return "was signed about other content"
    approved = event.verdict is Verdict.APPROVE and bool(decision.left)
    if approved and event.resulting_patch_sha != decision.result_sha:
        return "approves another part than the one that was signed"
    return ""


def _same_verdict(decision: InboxDecision, event: ActionDecided) -> bool:
    """Return True if the verdict is the signed one; an approval of which nothing stays is a rejection."""
    nothing_left = decision.verdict is Verdict.APPROVE and bool(decision.left) and event.verdict is Verdict.REJECT
    return event.by == decision.by and (event.verdict is decision.verdict or nothing_left)


class SignedHead(Struct, frozen=True):
    """The newest event of a session that shared state has: its number and its hash.

    Before the first event `seq` is -1 and `hash` is empty. `fence` is the number of the lease under which the worker
    wrote. `signature` is one of `SignedPurpose.JOURNAL` over `message`.
    """

    session: SessionId
    seq: int
    hash: str
    fence: int
    worker: str
    signature: str = ""

    @property
    def message(self) -> bytes:
        """The signed bytes."""
        parts = (self.session, self.seq, self.hash, self.fence, self.worker)
        return signed_message(SignedPurpose.JOURNAL, *parts)


def decision_text(decision: InboxDecision) -> str:
    """Return the text of a decision that is signed and stored; all of the decision is in it."""
    return msgspec.json.encode(replace(decision, signed=None)).decode()


def decision_message(text: str) -> bytes:
    """Return the bytes that the signature of a decision covers."""
    return signed_message(SignedPurpose.DECISION, text)


def read_decision(text: str) -> InboxDecision | str:
    """Return the decision in a text, or why it is none that a person makes."""
    try:
        decision = msgspec.json.decode(text, type=InboxDecision)
        parse_reference(str(decision.reference))
    except (msgspec.MsgspecError, UsageError, RecursionError, UnicodeError):
        return _NONE
    names = (decision.made_by, decision.made_at)
    if decision.signed is not None or not all(len(each) <= MOST_NAME_CHARS and each.isprintable() for each in names):
        return _NONE
    if decision.by != USER:
        return "only a person decides from another machine"
    return decision


def signed_decision(decision: InboxDecision, principal: str, signed: SignedText) -> InboxDecision:
    """Return a decision as the principal who signed it made it, for whomever the text names."""
    made_by = principal if decision.made_by in {"", principal} else f"{principal} for {decision.made_by}"
    return replace(decision, made_by=made_by, signed=signed)
