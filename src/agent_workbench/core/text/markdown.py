"""Foreign text in markdown: shown as it is, whatever it holds; it links, mentions, closes and formats nothing."""

import re

from agent_workbench.core.text.sanitizer import sanitize, sanitize_line

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~&$])")
# What begins a list, a heading's underline or a rule, where a line begins with it.
_LEAD = re.compile(r"^([-+=]|\d+(?=[.)]))")
# What forges make links of after the markup was read: an escape does not stop them, an empty comment does.
_LINKED = re.compile(r"@(?=\w)|\\#(?=\d)|:(?=//)|\b[Ww]{3}(?=\.)|\b[Gg][Hh]-(?=\d)")
_TICKS = re.compile(r"`+")


def plain(text: str, limit_chars: int = 400) -> str:
    """Return a text as one line of markdown that reads as the text does, cut where it gets long."""
    escaped = _LEAD.sub(_escaped_lead, _MARKUP.sub(r"\\\1", sanitize_line(text, limit_chars)))
    return _LINKED.sub(lambda match: f"{match[0]}<!-- -->", escaped)


def _escaped_lead(match: re.Match[str]) -> str:
    # A digit cannot be escaped, what stands behind it can: an empty comment keeps the two apart.
    return f"{match[0]}<!-- -->" if match[0].isdigit() else f"\\{match[0]}"


def code(text: str, limit_chars: int = 200) -> str:
    """Return a text as a span of code on one line; nothing for nothing."""
    line = sanitize_line(text, limit_chars)
    if not line:
        return ""
    fence = "`" * (_longest_ticks(line) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def cell(text: str, limit_chars: int = 200) -> str:
    """Return a text as a span of code in a table: a bar would end the cell even there."""
    return code(text, limit_chars).replace("|", "\\|")


def fenced(text: str, language: str = "", limit_chars: int = 4_000) -> str:
    """Return a text as a block of code that nothing in it can end."""
    block = sanitize(text.strip("\n"), limit_chars=limit_chars)
    fence = "`" * max(3, _longest_ticks(block) + 1)
    return f"{fence}{language}\n{block}\n{fence}"


def _longest_ticks(text: str) -> int:
    return max((len(each) for each in _TICKS.findall(text)), default=0)
