"""Syntax highlighting, and marks on search words in code."""

import re
from collections.abc import Sequence
from itertools import pairwise

from rich.style import Style

from agent_workbench.tui.widgets.rows import Span
from agent_workbench.views.blocks import Tone

Lines = list[list[Span]]


def plain_lines(text: str) -> Lines:
    """Return the lines of `text` without colours."""
    return [[(line, Tone.PLAIN)] for line in text.split("\n")]


def coloured_lines(path: str, text: str, dark: bool, language: str = "") -> Lines:
    """Return the highlighted lines of `text`; the first call loads lexers and is slow, so run it in a thread.

    The language is guessed from the path if it is not given.
    """
    from rich.console import Console
    from rich.syntax import Syntax

    lexer = language or Syntax.guess_lexer(path, text)
    code = Syntax(text, lexer, theme="monokai" if dark else "friendly", background_color="default").highlight(text)
    console = Console(width=10, force_terminal=False)
    code.rstrip()
    return [
        [(segment.text, _foreground(segment.style)) for segment in line.render(console) if segment.text]
        for line in code.split("\n", allow_blank=True)
    ]


def mark_words(lines: Lines, words: Sequence[str]) -> Lines:
    """Return the lines with every occurrence of the words marked, in any case, also inside of longer words."""
    wanted = sorted({word for word in words if word.strip()}, key=len, reverse=True)
    if not wanted:
        return lines
    pattern = re.compile("|".join(map(re.escape, wanted)), re.IGNORECASE)
    return [_marked(line, pattern) for line in lines]


def _marked(line: list[Span], pattern: re.Pattern[str]) -> list[Span]:
    text = "".join(each for each, _ in line)
    hits = [found.span() for found in pattern.finditer(text)]
    if not hits:
        return line
    marked: list[Span] = []
    at = 0
    for piece, look in line:
        end = at + len(piece)
        cuts = sorted({at, end, *(min(max(place, at), end) for hit in hits for place in hit)})
        for start, stop in pairwise(cuts):
            hit = any(first <= start < last for first, last in hits)
            marked.append((text[start:stop], Tone.HIT if hit else look))
        at = end
    return marked


def _foreground(style: Style | None) -> Style:
    return Style() if style is None else Style(color=style.color, bold=style.bold, italic=style.italic)
