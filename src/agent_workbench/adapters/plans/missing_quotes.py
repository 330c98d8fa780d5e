"""Quotes that an edited plan lacks: around words with a colon, a hash or another sign that YAML reads itself."""

import re

from agent_workbench.adapters.plans.plan_parser import Compose, PlanText, read_plan
from agent_workbench.adapters.plans.plan_renderer import render_quoted
from agent_workbench.core.errors import PlanError
from agent_workbench.core.yaml_documents.nodes import DocumentError, line_end

MOST_QUOTED = 50
"""Maximum number of values in a text that get quotes."""
_WORDED = "description|goal|suggested_approach|blocked_because|source"
_VALUE = re.compile(rf"(?P<key> *(?:- +)?(?:{_WORDED}): +|goal: +)(?P<value>[^\s\"'|>].*)", re.ASCII)
_ITEM = re.compile(r"(?P<key> *- +)(?P<value>[^\s\"'|>].*)", re.ASCII)
_KEY = re.compile(r"[a-z_]+:(?: |$)", re.ASCII)


def read_quoted(text: str, name: str, compose: Compose) -> PlanText:
    """Return the plan in a text, with quotes around words that lack them.

    Raises `PlanError`, which tells the fault of the text as it is, if quotes do not mend it.
    """
    first: PlanError | None = None
    for _ in range(MOST_QUOTED):
        try:
            return read_plan(text, name, compose)
        except PlanError as fault:
            first = first or fault
            cause = fault.__cause__
            quoted = with_quotes(text, cause.mark.line) if isinstance(cause, DocumentError) else None
            if quoted is None:
                raise first from cause
            text = quoted
    return read_plan(text, name, compose)


def with_quotes(text: str, line: int) -> str | None:
    """Return the text with quotes around the words on a line (from 1), None if that is no line of words without them.

    Words are the value of a key that takes a sentence, or an item of a list such as a command.
    """
    start = end = 0
    for _ in range(line):
        start, end = end, line_end(text, end)
    whole = text[start:end].rstrip()
    match = _VALUE.fullmatch(whole) or _ITEM.fullmatch(whole)
    if match is None or (match.re is _ITEM and _KEY.match(match["value"])):
        return None
    return text[:start] + match["key"] + render_quoted(match["value"]) + text[start + len(whole) :]
