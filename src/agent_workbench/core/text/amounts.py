"""Parts of messages to a person: numbers, times, quoted values, short titles and suggestions."""

import difflib
import re
from collections.abc import Iterable

_TIME = re.compile(r"([1-9][0-9]{0,4})\s?(min|h|d)", re.ASCII)
_SECONDS = {"min": 60, "h": 3_600, "d": 86_400}

TITLE_CHARS = 50
LEAST_CLAUSE_CHARS = 12
_CLAUSE_END = re.compile(r"[.!?;:,]\s|\s[–—(-]")


def dollars_text(dollars: float) -> str:
    """Return a price: cents if it has some, else four decimal places; a cost is never shown as zero."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    return f"${dollars:.4f}" if dollars >= 0.0001 else "< $0.0001"


def bytes_text(size: int) -> str:
    """Return a size such as `0 kB`, `12 kB`, `3.4 MB` or `1.2 GB`."""
    if size < 1_000_000:
        return f"{-(-size // 1000)} kB"
    return f"{size / 1e6:,.1f} MB" if size < 1_000_000_000 else f"{size / 1e9:,.1f} GB"


def counted_text(many: int, what: str) -> str:
    """Return `1 task` or `12 tasks`."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def span_text(first: int, last: int) -> str:
    """Return `step 3` or `steps 1–12`."""
    return f"step {first}" if first == last else f"steps {first}–{last}"


def time_seconds(text: str) -> int | None:
    """Return the seconds of a time such as `30min`, `12h` or `3d`, None for any other text."""
    match = _TIME.fullmatch(text)
    return int(match[1]) * _SECONDS[match[2]] if match is not None else None


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
