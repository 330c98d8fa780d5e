"""Syntax highlighting of a diff, done in a thread for the parts that are drawn."""

import asyncio
from collections.abc import Callable, Sequence

from agent_workbench.tui.widgets.code_colours import coloured_lines
from agent_workbench.tui.widgets.rows import Span
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff_document import DiffDocument
from agent_workbench.views.diff_lines import DiffLine

PART_LINES = 120
"""Lines that are highlighted together: few enough that the lexer takes no noticeable time."""
LONGEST_CHARS = 1000


class DiffColours:
    """Highlighted lines, known for those that were drawn; asks for a part of the diff when its lines are drawn."""

    def __init__(self) -> None:
        self._shown = DiffDocument()
        self._dark = self._whole = True
        self._known: dict[int, list[Span]] = {}
        self._asked: set[int] = set()
        self._waiting: list[tuple[int, int]] = []

    def begin(self, shown: DiffDocument, *, dark: bool, whole: bool = True) -> None:
        """Take the next version of the diff; lines that are unchanged stay highlighted.

        While it is not `whole`, its last part is not highlighted: it would be again with every token.
        """
        self._whole = whole
        kept = shown.same if dark == self._dark else 0
        self._shown, self._dark = shown, dark
        self._known = {number: spans for number, spans in self._known.items() if number < kept} if kept else {}
        self._asked = {first for first in self._asked if first + PART_LINES <= kept}
        self._waiting.clear()

    def of(self, number: int) -> list[Span] | None:
        """Return a highlighted line, None if it is not known; it is asked for then."""
        known = self._known.get(number)
        if known is None:
            self._ask(number)
        return known

    @property
    def wanted(self) -> bool:
        """True while something was asked for and is not known."""
        return bool(self._waiting)

    def _ask(self, number: int) -> None:
        line = self._shown.lines[number]
        if line.at < 0 or line.file < 0:
            return
        first = number - line.at % PART_LINES
        if first in self._asked:
            return
        end = first
        while end < min(first + PART_LINES, len(self._shown.lines)) and self._shown.lines[end].hunk == line.hunk:
            end += 1
        if end == len(self._shown.lines) and not self._whole:
            return
        self._asked.add(first)
        self._waiting.append((first, end))

    async def find(self, tell: Callable[[], None]) -> None:
        """Highlight what was asked for, the last part first, and call `tell` after each part."""
        while self._waiting:
            shown, (first, end) = self._shown, self._waiting.pop()
            path = shown.files[shown.lines[first].file].path
            found = await asyncio.to_thread(_coloured, path, shown.lines[first:end], self._dark)
            if self._shown is shown:
                self._known.update((first + number, spans) for number, spans in found.items())
                tell()


def _coloured(path: str, lines: Sequence[DiffLine], dark: bool) -> dict[int, list[Span]]:
    """Return the highlighted lines by number; old and new side are lexed separately, as they are in a file."""
    found: dict[int, list[Span]] = {}
    for gone in (Tone.REMOVED, Tone.ADDED):
        if gone is Tone.ADDED and not any(line.tone is Tone.REMOVED for line in lines):
            break
        side = [number for number, line in enumerate(lines) if line.tone is not gone and line.at >= 0]
        text = "\n".join(lines[number].text[:LONGEST_CHARS] for number in side)
        for number, spans in zip(side, coloured_lines(path, text, dark), strict=False):
            # Only the colours are taken from the lexer, never the text.
            if number not in found and "".join(each for each, _ in spans) == lines[number].text:
                found[number] = spans
    return found
