"""Parts of messages to the user: quoted values, short titles, and suggestions for misspelled words."""

import difflib
import re
from collections.abc import Iterable

TITLE_CHARS = 50
LEAST_CLAUSE_CHARS = 12
_CLAUSE_END = re.compile(r"[.!?;:,]\s|\s[–—(-]")


def quoted(text: str, limit: int = 60) -> str:
    """Return `text` quoted for a message: one line, nothing unprintable, at most `limit` characters."""
    return repr(text if len(text) <= limit else f"{text[:limit]}…")


def short_title(words: str) -> str:
    """Return a title of at most `TITLE_CHARS` characters: the first line of the words, or the first clause of it."""
    line = " ".join(words.strip().partition("\n")[0].split())
    if len(line) <= TITLE_CHARS:
        return line
    ends = (each.start() for each in _CLAUSE_END.finditer(line, LEAST_CLAUSE_CHARS, TITLE_CHARS + 2))
    if end := next(ends, 0):
        return line[:end]
    head = line[: TITLE_CHARS - 1]
    return f"{head.rpartition(' ')[0] or head}…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suffix for a message that suggests the most similar known word, empty if none is similar."""
    close = difflib.get_close_matches(word[:100], list(known), 1, 0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
