"""Detection of text that repeats itself: one block again and again without a difference, as models write in a loop.

Found are tandem repeats: each character equals the one a period before it. The thresholds were chosen on 95 MB of real
files, of which none may give an alarm (`bench.repetition`).
"""

import re

from msgspec import Struct

_GRAM = 16
"""Characters that have to recur before a period is tried."""
MOST_CHARS = 350
"""Repeated characters that make a loop of code or prose."""
MOST_DATA_CHARS = 1_500
"""The same for a block without words, such as a row of zeros: tables repeat more than code."""
MOST_SAME_CHARS = 10_000
"""The same for one sign again and again, as test data has it."""
_COPIES = ((200, 2.0), (450, 1.5))
"""Copies of a block that make a loop, by the period below which they apply: files hardly repeat a long block once."""
_COPIES_OF_LONG = 1.25
_WINDOW = 16_384
"""Characters that are compared at least; a longer period is not found."""
# A literal in code, or a number: a block of data has no words besides them.
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\b0x[0-9a-fA-F]+|\d[\d_.]*(?:[eE][+-]?\d+)?\w?')
_WORD = re.compile(r"[^\W\d_]{2}")


class Repetition(Struct, frozen=True):
    """A block of `period` characters that was written once up to `end`, and then `chars` characters of it again."""

    end: int
    period: int
    chars: int


class RepetitionDetector:
    """Detector for a text that comes in pieces; time and memory for each character are bounded."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._dropped = 0
        self._tail = ""
        self._last: dict[str, int] = {}
        self._period = 0
        self._run = 0

    def feed(self, piece: str) -> Repetition | None:
        """Add the next piece; return the repetition at the end of the text, None if there is none."""
        for character in piece:
            self._add(character)
        return self._found()

    def _add(self, character: str) -> None:
        if len(self._text) >= 2 * _WINDOW:
            self._shorten()
        text = self._text
        text.append(character)
        at = len(text) - 1
        self._tail = (self._tail + character)[-_GRAM:]
        if self._period and text[at - self._period] == character:
            self._run += 1
        else:
            self._period = self._run = 0
            before = self._last.get(self._tail, -1) if len(self._tail) == _GRAM else -1
            if before >= 0:
                self._period, self._run = at - before, self._matching(at, at - before)
        self._last[self._tail] = at

    def _matching(self, at: int, period: int) -> int:
        """Return how many characters up to `at` equal the one a period before them, as far as it matters."""
        start, least = at, max(period, at - MOST_DATA_CHARS)
        while start >= least and self._text[start] == self._text[start - period]:
            start -= 1
        return at - start

    def _shorten(self) -> None:
        """Forget the older half of the text."""
        self._text = self._text[_WINDOW:]
        self._dropped += _WINDOW
        self._last.clear()
        self._run = min(self._run, _WINDOW - self._period)
        if self._run <= 0:
            self._period = self._run = 0

    def _found(self) -> Repetition | None:
        period, run = self._period, self._run
        copies = next((copies for below, copies in _COPIES if period < below), _COPIES_OF_LONG)
        if run < MOST_CHARS or run < copies * period:
            return None
        if run < MOST_SAME_CHARS and period == 1 and not self._text[-1].isspace():
            return None
        if run < MOST_DATA_CHARS and _is_data("".join(self._text[-2 * period :]), period):
            return None
        return Repetition(self._dropped + len(self._text) - run, period, run)


def _is_data(twice: str, period: int) -> bool:
    """Return True if a block, given twice, has no words but in literals, or no space between them."""
    start = twice.find("\n", 0, period) + 1 or max(0, twice.find(" ", 0, period))
    block = twice[start : start + period].replace('\\"', '"')
    return not re.search(r"\s", block) or not _WORD.search(_LITERAL.sub("", block))


def find_repetition(text: str) -> Repetition | None:
    """Return the first repetition in a text as the detector finds it, character by character; None without one."""
    detector = RepetitionDetector()
    return next((found for character in text if (found := detector.feed(character))), None)
