"""Bounded output of a command: the stored head and tail, and the live stream."""

import asyncio
import codecs

from agent_workbench.core.ports.workspace import OnOutput

_CONTINUATION = range(0x80, 0xC0)
_LONGEST_SEQUENCE = 4


def cut_line(count: int) -> str:
    """Return the line that replaces `count` removed bytes."""
    return f"… {count} bytes cut …\n"


class KeptOutput:
    """Head and tail of the output, each half of `limit_bytes`, and the number of bytes between them."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, piece: bytes) -> None:
        """Add the next bytes; memory stays below twice the limit."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        over = len(self._tail) - self._half
        if over > 0:
            del self._tail[:over]
            self._cut += over

    def text(self) -> tuple[str, int]:
        """Return the text, with a line in place of removed bytes, and their number."""
        self._trim()
        if not self._cut:
            return (self._head + self._tail).decode("utf-8", "replace"), 0
        head, tail = _without_torn_end(self._head), _without_torn_start(self._tail)
        cut = self._cut + len(self._head) - len(head) + len(self._tail) - len(tail)
        before = head.decode("utf-8", "replace")
        between = "" if before.endswith("\n") or not before else "\n"
        return f"{before}{between}{cut_line(cut)}{tail.decode('utf-8', 'replace')}", cut


def _without_torn_end(data: bytearray) -> bytearray:
    """Remove an incomplete UTF-8 sequence at the end."""
    for back in range(1, min(_LONGEST_SEQUENCE, len(data)) + 1):
        byte = data[-back]
        if byte in _CONTINUATION:
            continue
        length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return data[:-back] if length > back else data
    return data


def _without_torn_start(data: bytearray) -> bytearray:
    for position, byte in enumerate(data[:_LONGEST_SEQUENCE]):
        if byte not in _CONTINUATION:
            return data[position:]
    return data


class LiveOutput:
    """Live stream of output: at most one piece every `every_seconds`, each of at most `limit_bytes`."""

    def __init__(self, on_output: OnOutput, every_seconds: float, limit_bytes: int) -> None:
        self._on_output = on_output
        self._every = every_seconds
        self._limit = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._cut = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._last = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def add(self, piece: bytes) -> None:
        """Add the next bytes; they are sent now, or with others at the end of the interval."""
        self._waiting += piece
        over = len(self._waiting) - self._limit
        if over > 0:
            del self._waiting[:over]
            self._cut += over
        if self._timer is not None:
            return
        wait = self._last + self._every - self._loop.time()
        if wait <= 0:
            self._pass_on(final=False)
        else:
            self._timer = self._loop.call_later(wait, self._on_time)

    def close(self) -> None:
        """Send the remaining output."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pass_on(final=True)

    def _on_time(self) -> None:
        self._timer = None
        self._pass_on(final=False)

    def _pass_on(self, *, final: bool) -> None:
        data, cut = self._waiting, self._cut
        self._waiting, self._cut = bytearray(), 0
        text = ""
        if cut:
            self._decoder.reset()
            text, data = cut_line(cut), _without_torn_start(data)
        text += self._decoder.decode(data, final)
        self._last = self._loop.time()
        if text:
            self._on_output(text)
