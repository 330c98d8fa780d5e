"""Name of the client as decisions record it: it is foreign text, so it is bounded and plain."""

import re

from agent_workbench.core.proposals import ACP

MAX_CHARS = 40
UNKNOWN = "unknown client"
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


def decider_name(name: str | None) -> str:
    """Return the `by` of the decisions that a client of this name reports."""
    plain = _STRANGE.sub(" ", (name or "")[: 4 * MAX_CHARS]).strip()[:MAX_CHARS].strip()
    return f"{ACP}{plain or UNKNOWN}"
