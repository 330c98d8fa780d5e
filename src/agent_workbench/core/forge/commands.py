"""Decisions written in comments: `/approve REF`, `/reject REF reason` and `/retry`."""

import re
from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.inbox import Reference, parse_reference
from agent_workbench.core.text.sanitizer import sanitize, without_chat_markers

MAX_REASON_CHARS = 2_000
MAX_COMMENT_CHARS = 4_000
_HEAD = re.compile(r"/(approve|reject|retry)(?![^\s])")


class CommandVerb(StrEnum):
    """Verbs of a comment."""

    APPROVE = "approve"
    REJECT = "reject"
    RETRY = "retry"


class CommentCommand(Struct, frozen=True):
    """A comment that decides; `reference` is None for a retry."""

    verb: CommandVerb
    reference: Reference | None = None
    reason: str = ""


def read_command(text: str) -> CommentCommand | None:
    """Return the command that a whole comment is, None for an ordinary comment.

    The comment begins with the command, so a quote, a code block or a hidden text in front of it makes it an ordinary
    one. Nothing but the reason of a rejection follows. Raises `UsageError` for a command that is not written so.
    """
    said = text.replace("\r\n", "\n")
    head = _HEAD.match(said)
    if head is None:
        return None
    verb, words = CommandVerb(head[1]), said[head.end() :].strip().split(maxsplit=1)
    if len(said) > MAX_COMMENT_CHARS:
        raise UsageError(f"a comment that decides has at most {MAX_COMMENT_CHARS:,} characters")
    if verb is CommandVerb.RETRY:
        if words:
            raise UsageError("`/retry` stands alone in its comment")
        return CommentCommand(verb)
    if not words:
        raise UsageError(f"`/{verb}` lacks the reference of the proposal", advice=_example(verb))
    reference = parse_reference(words[0])
    reason = words[1].strip() if len(words) > 1 else ""
    if verb is CommandVerb.APPROVE and reason:
        raise UsageError("an approval has nothing behind its reference", advice=_example(verb))
    if any(_HEAD.match(line.strip()) for line in reason.split("\n")):
        raise UsageError("a comment makes one decision", advice="write a comment for each")
    if len(reason) > MAX_REASON_CHARS:
        raise UsageError(f"a reason has at most {MAX_REASON_CHARS:,} characters")
    return CommentCommand(verb, reference, without_chat_markers(sanitize(reason)))


def _example(verb: CommandVerb) -> str:
    return f"write `/{verb} SESSION/P-14@DIGEST{' and a reason' if verb is CommandVerb.REJECT else ''}`"
