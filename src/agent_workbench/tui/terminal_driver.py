"""Textual's drivers of a terminal and a web server: writers that do not block, after a last filter."""

import os
import signal
from collections.abc import Callable
from queue import Full, Queue
from threading import Thread

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.drivers.web_driver import WebDriver
from textual.filter import LineFilter

from agent_workbench.core.text.sanitizer import without_controls

MOST_QUEUED = 30
"""Writes that may wait; Textual's own number. A slow terminal shows what is current, not what was once."""
PATIENCE_SECONDS = 0.5
"""Time in which a terminal takes something, or else is stuck."""
PIECE_BYTES = 4096


class BoundedWriter(Thread):
    """Thread that writes to a terminal or pipe; what it does not take in time is dropped.

    Textual's own waits without end, and blocks the event loop: all sessions, and the end of a process whose terminal is
    gone. `on_gap` is called in this thread when all is written again after something was dropped.
    """

    def __init__(self, descriptor: int, on_gap: Callable[[], object]) -> None:
        super().__init__(name="output", daemon=True)
        self.stuck = False
        self._descriptor = descriptor
        self._on_gap = on_gap
        self._queue: Queue[bytes | None] = Queue(MOST_QUEUED)
        self._gap = False
        self._written = 0

    def write(self, data: bytes) -> None:
        """Queue data to be written; while the terminal is stuck and much waits, drop it at once."""
        if not self._queued(data):
            self._gap = True

    def run(self) -> None:
        """Write what is queued until `stop`, or until the terminal is gone."""
        try:
            while (data := self._queue.get()) is not None:
                while data:
                    written = os.write(self._descriptor, data[:PIECE_BYTES])
                    self._written += written
                    data = data[written:]
                if self._queue.empty():
                    self._caught_up()
        except OSError:
            self.stuck = True

    def stop(self) -> None:
        """End when all is written; a terminal that takes nothing is not waited for."""
        if not self._queued(None):
            return
        before = -1
        while self.is_alive() and self._written != before:
            before = self._written
            self.join(PATIENCE_SECONDS)
        self.stuck = self.stuck or self.is_alive()

    def _queued(self, data: bytes | None) -> bool:
        try:
            self._queue.put(data, timeout=0 if self.stuck else PATIENCE_SECONDS)
        except Full:
            self.stuck = True
            return False
        return True

    def _caught_up(self) -> None:
        self.stuck = False
        if self._gap:
            self._gap = False
            self._on_gap()


class TerminalDriver(LinuxDriver):
    """Driver of a terminal. `stuck`: the terminal takes nothing, and who writes to it waits."""

    _writer: BoundedWriter | None = None
    _encoding = "utf-8"

    @property
    def stuck(self) -> bool:
        return self._writer is not None and self._writer.stuck

    def start_application_mode(self) -> None:
        """Take the terminal; Textual's own writer is started too, and gets nothing to write."""
        output = self._file
        if output is None:
            raise AssertionError("there is no standard error to draw on")
        self._encoding = output.encoding
        self._writer = BoundedWriter(output.fileno(), lambda: self._app.call_later(self._app.refresh))
        self._writer.start()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def write(self, data: str) -> None:
        if self._writer is not None:
            self._writer.write(data.encode(self._encoding, "replace"))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.stop()
        super().close()


class ServedDriver(WebDriver):
    """Driver of a page in a browser. `stuck`: the web server takes nothing, or is gone."""

    _writer: BoundedWriter | None = None

    @property
    def stuck(self) -> bool:
        return self._writer is not None and self._writer.stuck

    def start_application_mode(self) -> None:
        """Take the pipes of the web server; the handlers of signals stay those of the app."""
        self._writer = BoundedWriter(self.fileno, lambda: self._app.call_later(self._app.refresh))
        self._writer.start()
        self._write = self._writer.write  # type: ignore[assignment] # a packet is written or dropped whole
        kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        super().start_application_mode()
        for number, handler in kept.items():
            signal.signal(number, handler)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.stop()
        super().close()


class ControlGuard(LineFilter):
    """Removes control codes from every line that is written, and links from its styles."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without anything that controls a terminal."""
        if all(_harmless(segment) for segment in segments):
            return segments
        return [Segment(without_controls(text), _unlinked(style)) for text, style, _ in segments]


def _harmless(segment: Segment) -> bool:
    text, style, control = segment
    return text.isprintable() and control is None and (style is None or style.link is None)


def _unlinked(style: Style | None) -> Style | None:
    return style if style is None or style.link is None else style.update_link(None)
