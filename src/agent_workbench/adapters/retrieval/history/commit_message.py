"""What a message of a commit says, without what tools and customs add to it."""

import re

# What tools and customs add to a message: who had to do with it, where it was talked of.
_NOISE = re.compile(
    r"^[ \t]*[A-Za-z][\w-]{1,30}-by: .*$|^[ \t]*(?:change-id|cc)[ \t]*:.*$|https?://\S{1,2000}|\(?#\d{1,9}\)?",
    re.MULTILINE | re.IGNORECASE,
)


def plain(text: str) -> str:
    """Return a message without who signed it, addresses of pages, and numbers of issues."""
    return _NOISE.sub(" ", text)


def title_of(message: str) -> str:
    """Return the first line of what a message says."""
    return plain(message).strip().partition("\n")[0]
