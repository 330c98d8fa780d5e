"""Foreign text in Markdown: it renders literally and cannot link, mention, format, or end its container."""

import re
from itertools import groupby

from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, sanitize_whole

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~&$])")
# Starts of a list item, a heading's underline or a rule at the beginning of a line.
_LEAD = re.compile(r"^([-+=]|\d+(?=[.)]))")
# Forges turn these into links after parsing; an escape does not prevent it, an empty comment does.
_LINKED = re.compile(r"@(?=\w)|\\#(?=\d)|:(?=//)|\b[Ww]{3}(?=\.)|\b[Gg][Hh]-(?=\d)")
_TICKS = re.compile(r"`+")
# A phrase that is a code span already, apart from other words.
_SPAN = re.compile(r"(?:(?<=\s)|(?<=\s\()|^)`([^`]+)`(?=[.,;:!?)]*(?:\s|$))")


def plain(text: str, limit_chars: int = 400) -> str:
    """Return a text as one line of Markdown that renders literally, cut to `limit_chars`."""
    escaped = _LEAD.sub(_escaped_lead, _MARKUP.sub(r"\\\1", sanitize_line(text, limit_chars)))
    return _LINKED.sub(lambda match: f"{match[0]}<!-- -->", escaped)


def _escaped_lead(match: re.Match[str]) -> str:
    # A digit cannot be escaped, but an empty comment separates it from what follows.
    return f"{match[0]}<!-- -->" if match[0].isdigit() else f"\\{match[0]}"


def literal(text: str, limit_chars: int = 400) -> str:
    """Return a text as one line of Markdown that reads well unrendered too.

    Words with marks become code spans, and what is one stays as it is.
    """
    parts = _SPAN.split(sanitize_line(text, limit_chars))
    return "".join(
        code(part, limit_chars) if at % 2 else _literal_words(part, limit_chars) for at, part in enumerate(parts)
    )


def _literal_words(text: str, limit_chars: int) -> str:
    words = text.split(" ")
    marked = [bool(_MARKUP.search(each) or _LINKED.search(each)) for each in words]
    marked[0] = marked[0] or bool(_LEAD.match(words[0]))
    grouped = groupby(zip(marked, words, strict=True), key=lambda each: each[0])
    phrases = ((is_marked, " ".join(word for _, word in group)) for is_marked, group in grouped)
    return " ".join(code(phrase, limit_chars) if is_marked else phrase for is_marked, phrase in phrases)


def code(text: str, limit_chars: int = 200) -> str:
    """Return a text as an inline code span; empty for an empty text."""
    line = sanitize_line(text, limit_chars)
    if not line:
        return ""
    fence = "`" * (_longest_ticks(line) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def cell(text: str) -> str:
    """Return a text as an inline code span for a table cell, where a bar would end the cell."""
    return code(text).replace("|", "\\|")


def fenced(text: str, language: str = "", limit_chars: int = 4_000) -> str:
    """Return a text as a fenced code block that its content cannot end."""
    return _fenced(sanitize(text.strip("\n"), limit_chars=limit_chars), language)


def fenced_whole(text: str, language: str = "") -> str:
    """Return a text that is to be approved as a fenced code block: nothing of it is cut, nor invisible."""
    return _fenced(sanitize_whole(text, keep_returns=True), language)


def _fenced(block: str, language: str) -> str:
    fence = "`" * max(3, _longest_ticks(block) + 1)
    return f"{fence}{language}\n{block}\n{fence}"


def _longest_ticks(text: str) -> int:
    return max((len(each) for each in _TICKS.findall(text)), default=0)
