"""Rows of a diff, made when they are drawn: marks, numbers, signs and highlighted text, in one column or two."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from rich.cells import cell_len
from rich.style import Style

from agent_workbench.tui.panes.diff_layout import HALF_MARK_CELLS, MARK_CELLS, DiffLayout
from agent_workbench.tui.widgets.colours import Tones, coloured_lines
from agent_workbench.tui.widgets.rows import SIGNS, Piece, Row, Span, cut_line
from agent_workbench.views.blocks import Tone
from agent_workbench.views.changed_words import Spans, changed_words
from agent_workbench.views.diff_document import DiffDocument, DiffLine

PART_LINES = 120
"""Lines that are highlighted together: few enough that the lexer takes no noticeable time."""
LONGEST_CHARS = 1000

TAKEN, PARTLY, LEFT = "●", "◐", "○"
CURSOR_SIGN = "▌"
KEPT_ROWS = 2000

WORDS = {Tone.ADDED: Tone.ADDED_WORD, Tone.REMOVED: Tone.REMOVED_WORD}


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


class DiffRows:
    """Maker of screen rows for a diff layout, with a cache.

    `mark_of` returns the selection sign of a line (empty: none). `pointed` returns True if the cursor or the selected
    range is on a line.
    """

    def __init__(
        self,
        layout: DiffLayout,
        colours: DiffColours,
        tones: Tones,
        *,
        text_of: Callable[[int], str],
        mark_of: Callable[[int], str],
        pointed: Callable[[int], bool],
    ) -> None:
        self._layout = layout
        self._text = LineText(layout, colours, tones)
        self._tones = tones
        self._text_of = text_of
        self._mark_of = mark_of
        self._pointed = pointed
        self._made: dict[int, list[Row]] = {}

    def forget(self, *, words: bool = False) -> None:
        """Drop the rows; `words`: the lines are others, so changed words are computed anew."""
        self._made.clear()
        if words:
            self._text.forget()

    def forget_lines(self, lines: Iterable[int]) -> None:
        """Drop the rows of these lines."""
        for line in lines:
            self._made.pop(line, None)

    def row(self, number: int) -> Row:
        """Return a row of the diff."""
        line, offset = self._layout.line_at(number)
        rows = self._made.get(line)
        if rows is None:
            if len(self._made) > KEPT_ROWS:
                self._made.clear()
            rows = self._made[line] = list(self._rows(line))
        return rows[offset]

    def _rows(self, number: int) -> Iterator[Row]:
        line = self._layout.shown.lines[number]
        if number in self._layout.folds and number not in self._layout.look.folds:
            yield self._fold_row(number)
        elif line.at < 0:
            if self._layout.has_blank(number):
                yield Row((("", Tone.PLAIN),))
            yield from self._head_rows(number, line)
        elif self._layout.look.split:
            yield from self._paired_rows(number, line)
        else:
            yield from self._code_rows(number, line)

    def _fold_row(self, number: int) -> Row:
        hidden = self._layout.folds[number] - number
        lead = " " * (self._layout.gutter - len("⋯ "))
        return Row(
            ((f"{self._pointer(number)}{lead}", Tone.ACCENT), (f"⋯ {hidden} unchanged lines", Tone.HUNK)), number
        )

    def _head_rows(self, number: int, line: DiffLine) -> Iterator[Row]:
        marked = self._layout.look.marks
        text = line.text if line.tone is Tone.DIM else self._text_of(number)
        lead = MARK_CELLS if marked else 0
        texts = cut_line(text, self._layout.room(line))
        for text, piece in zip(texts, _measured(number, texts, lead), strict=True):
            gutter = self._marks(number, first=piece.start == 0) if marked else ()
            spans: tuple[Span, ...] = (*gutter, (text, line.tone))
            if line.tone is Tone.FILE and piece.ends:
                spans += self._file_stat(line, lead + piece.cells)
            yield Row(spans, number, None, (piece,))

    def _file_stat(self, line: DiffLine, used: int) -> tuple[Span, ...]:
        if line.file < 0:
            return ()
        head = self._layout.shown.files[line.file]
        counted = f"  +{head.added} −{head.removed}" if head.added or head.removed else ""
        if line.file in self._layout.look.files:
            counted += "  ⋯ folded"
        twice = "  ! look twice" if line.file in self._layout.look.special else ""
        room = self._layout.look.width - used
        tries = ((counted, twice), ("", twice), ("", twice[:3]))
        fitting = next((each for each in tries if cell_len("".join(each)) <= room), ("", ""))
        return (fitting[0], Tone.DIM), (fitting[1], Tone.WARN)

    def _code_rows(self, number: int, line: DiffLine) -> Iterator[Row]:
        digits, look = self._layout.shown.digits, self._layout.look
        mark = self._mark_of(number) if look.marks else ""
        left = mark == LEFT
        numbers = f"{line.old or '':>{digits}} {line.new or '':>{digits}} "
        sign = f"{SIGNS.get(line.tone, ' ')} "
        tone = Tone.DIM if left else line.tone
        fill = tone if tone in SIGNS else None
        room = self._layout.room(line) if look.wraps else sys.maxsize
        texts = list(self._text.pieces(number, line, room, left=left))
        pieces = _measured(number, [text for text, _ in texts], self._layout.gutter)
        for (_, styled), piece in zip(texts, pieces, strict=True):
            first = piece.start == 0
            marks = self._marks(number, first=first) if look.marks else ()
            lead = numbers if first else " " * len(numbers)
            spans = (*marks, (lead, Tone.NUMBER), (sign if first else "  ", tone), *styled)
            yield Row(spans, number, fill, (piece,))

    def _paired_rows(self, number: int, line: DiffLine) -> Iterator[Row]:
        """Yield the rows of a line on both sides, or of two lines side by side."""
        other = self._layout.partner.get(number, -1)
        old, new = (-1, number) if line.tone is Tone.ADDED else (number, other)
        if line.tone is Tone.PLAIN:
            new = number
        left, right = self._side(old, 0), self._side(new, 1)
        lead = 1 if self._layout.look.marks else 0
        for at in range(max(len(left), len(right))):
            left_spans, left_piece = left[at] if at < len(left) else self._blank_side()
            right_spans, right_piece = right[at] if at < len(right) else self._blank_side()
            pointer = self._pointer(number) if lead else ""
            spans: tuple[Span, ...] = ((pointer, Tone.ACCENT), *left_spans, ("│", Tone.RULE), *right_spans)
            yield Row(spans, number, None, (*left_piece, *right_piece))

    def _blank_side(self) -> tuple[tuple[Span, ...], tuple[Piece, ...]]:
        return ((" " * self._layout.half, Tone.PLAIN),), ()

    def _side(self, number: int, side: int) -> list[tuple[tuple[Span, ...], tuple[Piece, ...]]]:
        """Return the rows of a line on one side (0 or 1), padded to its width, with the parts of the line in each."""
        if number < 0:
            return []
        layout = self._layout
        line, half, gutter = layout.shown.lines[number], layout.half, layout.half_gutter
        mark = self._mark_of(number) if layout.look.marks else ""
        left = mark == LEFT
        tone = Tone.DIM if left else line.tone
        behind = self._tones[tone] if tone in SIGNS else Style()
        at = (1 if layout.look.marks else 0) + side * (half + 1) + gutter
        rows: list[tuple[tuple[Span, ...], tuple[Piece, ...]]] = []
        texts = list(self._text.pieces(number, line, layout.room(line), left=left))
        pieces = _measured(number, [text for text, _ in texts], at)
        for (_, styled), piece in zip(texts, pieces, strict=True):
            first = piece.start == 0
            numbered = f"{(line.new if side else line.old) or '':>{layout.shown.digits}} "
            lead = f"{mark if first else '':<{HALF_MARK_CELLS}}" if layout.look.marks else ""
            sign = f"{SIGNS.get(line.tone, ' ')} " if first else "  "
            spans: list[Span] = [(lead, self._mark_tone(mark))]
            spans += [(numbered if first else " " * len(numbered), behind + self._tones[Tone.NUMBER])]
            spans += [(sign, behind)]
            spans += [(text, behind + self._text.style(look)) for text, look in styled]
            spans += [(" " * (half - gutter - piece.cells), behind)]
            rows.append((tuple(spans), (piece,)))
        return rows

    def _pointer(self, number: int) -> str:
        return CURSOR_SIGN if self._pointed(number) else " "

    def _marks(self, number: int, *, first: bool) -> tuple[Span, ...]:
        mark = self._mark_of(number)
        return (self._pointer(number), Tone.ACCENT), (
            f"{mark if first else '':<{MARK_CELLS - 1}}",
            self._mark_tone(mark),
        )

    def _mark_tone(self, mark: str) -> Tone:
        return Tone.NUMBER if mark == TAKEN else Tone.WARN


def _measured(number: int, texts: Sequence[str], at: int) -> list[Piece]:
    """Return the parts of a line, whose texts begin at the cell `at` of their rows.

    The width of the line is the sum of the parts: a cut grapheme cluster takes more cells than a whole one.
    """
    cells = [cell_len(text) for text in texts]
    size = sum(cells)
    return [Piece(number, end - each, each, at, size) for each, end in zip(cells, accumulate(cells), strict=True)]


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
