"""Recording of screens as an asciicast (version 2), the format of asciinema."""

import json
from collections.abc import Iterable, Iterator, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

HIDE_CURSOR, CLEAR = "\x1b[?25l", "\x1b[2J"
RESET = "\x1b[0m"
Line = tuple[Segment, ...]
LAST_SECONDS = 2.0
"""Time for which the last screen is shown."""


class Asciicast:
    """Collects screens in order; `text` returns the file. The same screens give the same bytes."""

    def __init__(self, size: tuple[int, int], title: str, timestamp: int | None) -> None:
        """`timestamp` is the time of the recording in seconds since 1970."""
        width, height = size
        header: dict[str, object] = {"version": 2, "width": width, "height": height}
        header |= {} if timestamp is None else {"timestamp": timestamp}
        self._lines = [_json({**header, "title": title, "env": {"TERM": "xterm-256color"}})]
        self._shown: tuple[Line, ...] = ()
        self._seconds = 0.0

    def add(self, lines: Sequence[Strip], seconds: float, mark: str = "") -> None:
        """Add a screen `seconds` after the one before; `mark` is the label of a marker."""
        self._seconds += seconds
        now = tuple(map(tuple, lines))
        begin = "" if self._shown else HIDE_CURSOR + CLEAR
        changed = "".join(_changed(self._shown, now))
        if begin or changed:
            self._add("o", begin + changed)
        if mark:
            self._add("m", mark)
        self._shown = now

    def text(self) -> str:
        """Return the file."""
        last = _json([_rounded(self._seconds + LAST_SECONDS), "o", ""])
        return "\n".join((*self._lines, last, ""))

    def _add(self, kind: str, data: str) -> None:
        self._lines.append(_json([_rounded(self._seconds), kind, data]))


def terminal_text(segments: Iterable[Segment]) -> str:
    """Return the escape sequences that draw these segments and reset the style."""
    return f"{''.join(map(_terminal, segments))}{RESET}"


def _terminal(segment: Segment) -> str:
    style = segment.style or Style()
    codes = ["0", *(code for code, on in (("1", style.bold), ("2", style.dim), ("3", style.italic)) if on)]
    codes += [code for code, on in (("4", style.underline), ("7", style.reverse), ("9", style.strike)) if on]
    codes += [] if style.color is None else style.color.get_ansi_codes()
    codes += [] if style.bgcolor is None else style.bgcolor.get_ansi_codes(foreground=False)
    return f"\x1b[{';'.join(codes)}m{segment.text}"


def _changed(before: Sequence[Line], now: Sequence[Line]) -> Iterator[str]:
    """Yield the sequences that turn one screen into the next; of a line only from its first change to its last."""
    for number, line in enumerate(now):
        old = before[number] if number < len(before) else ()
        if line == old:
            continue
        first = _same(old, line)
        last = len(line)
        if _cells(old) == _cells(line):
            last -= _same(old[first:][::-1], line[first:][::-1])
        yield f"\x1b[{number + 1};{_cells(line[:first]) + 1}H{terminal_text(line[first:last])}"


def _same(one: Line, other: Line) -> int:
    """Return the number of equal segments at the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (each, its) in pairs if each != its), min(len(one), len(other)))


def _cells(line: Line) -> int:
    return sum(each.cell_length for each in line)


def _rounded(seconds: float) -> float:
    return round(seconds, 6)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
