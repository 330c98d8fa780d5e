"""Text of a line of a diff: highlighted, with changed words marked."""

from collections.abc import Iterator, Sequence

from rich.style import Style

from agent_workbench.tui.panes.diff.colours import DiffColours
from agent_workbench.tui.panes.diff.layout import DiffLayout
from agent_workbench.tui.widgets.rows import Span, cut_line
from agent_workbench.tui.widgets.tones import Tones
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff.changed_words import Spans, changed_words
from agent_workbench.views.diff.lines import DiffLine

WORDS = {Tone.ADDED: Tone.ADDED_WORD, Tone.REMOVED: Tone.REMOVED_WORD}


class LineText:
    """Makes the spans of lines when they are drawn; changed words are computed once."""

    def __init__(self, layout: DiffLayout, colours: DiffColours, tones: Tones) -> None:
        self._layout = layout
        self._colours = colours
        self._tones = tones
        self._words: dict[int, Spans] = {}

    def forget(self) -> None:
        """Forget the changed words: the lines are others."""
        self._words.clear()

    def pieces(self, number: int, line: DiffLine, room: int, *, left: bool) -> Iterator[tuple[str, Sequence[Span]]]:
        """Yield the text of a line in parts that fit, each with its spans."""
        if left:
            yield from ((piece, ((piece, Tone.DIM),)) for piece in cut_line(line.text, room))
            return
        spans = self._spans(number, line)
        if len(line.text) <= room and line.text.isascii():
            yield line.text, spans
            return
        at = 0
        for piece in cut_line(line.text, room):
            yield piece, _part(spans, at, at + len(piece))
            at += len(piece)

    def _spans(self, number: int, line: DiffLine) -> list[Span]:
        coloured = (self._colours.of(number) if self._tones.mixes else None) or [(line.text, line.tone)]
        words = self._changed(number) if line.tone in WORDS and self._layout.look.whole else ()
        if not words:
            return coloured
        word = self._tones[WORDS[line.tone]]
        spans: list[Span] = []
        at = 0
        for start, end in words:
            spans += _part(coloured, at, start)
            spans += [(text, word + self.style(look, text_only=True)) for text, look in _part(coloured, start, end)]
            at = end
        return [*spans, *_part(coloured, at, len(line.text))]

    def _changed(self, number: int) -> Spans:
        """Return the changed words of a line that replaces another one."""
        if number not in self._words:
            self._words[number] = ()
            lines = self._layout.shown.lines
            for old, new in self._layout.pairs_near(number):
                self._words[old], self._words[new] = changed_words(lines[old].text, lines[new].text)
        return self._words[number]

    def style(self, look: Tone | Style, *, text_only: bool = False) -> Style:
        """Return the style of a span; `text_only` leaves out the background of a tone."""
        if isinstance(look, Style):
            return look
        return Style() if text_only else self._tones[look]


def _part(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Return the spans of the characters from `start` to before `end`."""
    found: list[Span] = []
    at = 0
    for text, look in spans:
        first, last = max(start - at, 0), min(end - at, len(text))
        if first < last:
            found.append((text[first:last], look))
        at += len(text)
    return found
