"""Decisions as they are signed: the text that a person signs, and what is read back from it."""

import msgspec
from msgspec.structs import replace

from agent_workbench.core.errors import UsageError
from agent_workbench.core.inbox import InboxDecision, parse_reference
from agent_workbench.core.proposals import USER
from agent_workbench.core.signed import SignedPurpose, signed_message

MOST_TEXT_CHARS = 2_000_000


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
        return "its text is no decision"
    if decision.by != USER:
        return "only a person decides from another machine"
    return decision if decision.signed is None else "its text is no decision"
