"""Parts of messages to the user: quoted values, and suggestions for misspelled ones."""

import difflib
from collections.abc import Iterable


def quoted(text: str, limit: int = 60) -> str:
    """Return `text` quoted for a message: one line, nothing unprintable, at most `limit` characters."""
    return repr(text if len(text) <= limit else f"{text[:limit]}…")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suffix for a message that suggests the most similar known word, empty if none is similar."""
    close = difflib.get_close_matches(word[:100], list(known), 1, 0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
