"""Form of an answer in a chat: a call of a tool, or the reply to the user. An answer in no form is the reply."""

import re

from msgspec import Struct

_LEAD = re.compile(r"\s*(?:Thought|Action|Answer):")
_HEAD = re.compile(r"^(Action|Answer):[ \t]?", re.MULTILINE)
THOUGHT, ANSWER = "Thought:", "Answer"
_LABELS = (THOUGHT, "Action:", "Answer:")


class ChatForm(Struct, frozen=True):
    """An answer split into its parts; it may be unfinished. `reply` is None for a call, or as long as it may be one."""

    thought: str = ""
    reply: str | None = None
    call: str = ""


def split_chat_answer(text: str) -> ChatForm:
    """Return the parts of an answer.

    The first line that begins with `Action:` or `Answer:` decides, and only in an answer that begins with a label:
    neither a call that is quoted in a reply nor one below other words is a call.
    """
    if _LEAD.match(text) is None:
        return ChatForm(reply=text)
    head = _HEAD.search(text)
    if head is None:
        return ChatForm(_thought(text))
    thought = _thought(text[: head.start()])
    if head[1] == ANSWER:
        return ChatForm(thought, text[head.end() :])
    return ChatForm(thought, call=text[head.start() :])


def split_streamed(text: str) -> ChatForm:
    """Return the parts of an answer that is still being written: the first letters may become a label."""
    lead = text.lstrip()
    return ChatForm() if any(label.startswith(lead) for label in _LABELS) else split_chat_answer(text)


def _thought(text: str) -> str:
    return text.strip().removeprefix(THOUGHT).strip()
