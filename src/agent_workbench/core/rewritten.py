"""What a text of YAML must not lose when it is written anew: its comments, and how its lines end."""

import re
from collections import Counter

# Also what only looks like one: better that a file is not changed than that a line of it is lost.
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\r\n]*?(?=\s*$)", re.MULTILINE)


def lost_comment(before: str, after: str) -> str:
    """Return the first comment of `before` that is not in `after`, empty where all are."""
    lost = Counter(_COMMENT.findall(before)) - Counter(_COMMENT.findall(after))
    return next(iter(lost), "")


def with_line_ends_of(before: str, after: str) -> str:
    """Return `after` with all its lines ended as those of `before`."""
    newline = "\r\n" if "\r\n" in before else "\n"
    return after.replace("\r\n", "\n").replace("\n", newline)
