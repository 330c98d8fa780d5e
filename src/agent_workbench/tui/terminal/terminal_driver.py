"""Textual's driver of a terminal, with a writer that does not block the app when the terminal takes nothing."""

import os
from collections.abc import Callable
from queue import Full, Queue
from threading import Thread

from textual.drivers.linux_driver import LinuxDriver

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
