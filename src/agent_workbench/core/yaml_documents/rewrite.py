"""Properties of a YAML text that a rewrite must preserve: comments and line endings."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

_SIGN = re.compile(r"(?:^|(?<=\s))#")
MAX_SIGNS = 20
"""Maximum number of `#` examined in a line."""


def lost_comment(before: str, after: str) -> str:
    """Return a comment of `before` that `after` lacks, empty if there is none."""
    return next(iter(Counter(_comments(before)) - Counter(_comments(after))), "")


def _comments(text: str) -> Iterator[str]:
    """Yield possible comments: quotes are not parsed, so each `#` of a line may begin one."""
    for line in text.splitlines():
        yield from (line[sign.start() :].rstrip() for sign in islice(_SIGN.finditer(line), MAX_SIGNS))


def with_line_ends_of(before: str, after: str) -> str:
    """Return `after` with the line endings of `before`."""
    newline = "\r\n" if "\r\n" in before else "\n"
    return after.replace("\r\n", "\n").replace("\n", newline)
