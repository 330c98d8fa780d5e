"""What a text of YAML must not lose when it is written anew: its comments, and how its lines end."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

_SIGN = re.compile(r"(?:^|(?<=\s))#")
MOST_SIGNS = 20
"""So many signs of a line are looked at."""


def lost_comment(before: str, after: str) -> str:
    """Return a comment of `before` that `after` lacks, or what looks like one; empty where it has them all."""
    return next(iter(Counter(_comments(before)) - Counter(_comments(after))), "")


def _comments(text: str) -> Iterator[str]:
    """Yield what may be a comment: a sign in quotes is not told apart, so each sign of a line may begin the comment."""
    for line in text.splitlines():
        yield from (line[sign.start() :].rstrip() for sign in islice(_SIGN.finditer(line), MOST_SIGNS))


def with_line_ends_of(before: str, after: str) -> str:
    """Return `after` with all its lines ended as those of `before`."""
    newline = "\r\n" if "\r\n" in before else "\n"
    return after.replace("\r\n", "\n").replace("\n", newline)
