"""Decisions as they are signed: the text that a person signs, and what is read back from it."""

import msgspec
from msgspec.structs import replace

from agent_workbench.core.errors import UsageError
from agent_workbench.core.inbox import InboxDecision, parse_reference
from agent_workbench.core.proposals import USER
from agent_workbench.core.signed import SignedPurpose, SignedText, signed_message

MOST_NAME_CHARS = 200
_NONE = "its text is no decision"


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
