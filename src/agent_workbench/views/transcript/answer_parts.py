"""Parts of a model's answer, also while it streams: thought, action and body."""

import re

from msgspec import Struct

# Possessive, or a line of many spaces would backtrack through every split.
ACTION_LINE = re.compile(r"^Action:[ \t]*+(\S*+)[ \t]*+$", re.MULTILINE)
EDITS = frozenset({"rewrite", "write_diff"})
"""Tools whose body changes files."""
REFLEXION = "Reflexion:"


class AnswerParts(Struct, frozen=True):
    """An answer split into its parts; `action` is empty until it has arrived, `body` is what follows it."""

    thought: str
    action: str = ""
    body: str = ""
    reflects: bool = False


def split_answer(text: str) -> AnswerParts:
    """Return the parts of an answer, which may be unfinished or have no form at all."""
    lead = text.lstrip()
    if lead.startswith(REFLEXION):
        return AnswerParts(lead.removeprefix(REFLEXION).strip(), reflects=True)
    found = ACTION_LINE.search(text)
    if found is None:
        return AnswerParts(lead.removeprefix("Thought:").strip())
    thought = text[: found.start()].strip().removeprefix("Thought:").strip()
    return AnswerParts(thought, found[1], text[found.end() :].removeprefix("\n"))
