"""Log of a server: a file of bounded size, and its last lines for error messages."""

import asyncio
import os
from collections import deque
from pathlib import Path

_FILE_BYTES = 2_000_000
_LINES = 30
_LINE_LENGTH = 400


class ServerLog:
    """The log at `path`. A full log is moved to `<path>.1`, replacing the one there."""

    def __init__(self, path: Path, *, file_bytes: int = _FILE_BYTES) -> None:
        self.path = path
        self._file_bytes = file_bytes
        self._line = ""
        self._lines: deque[str] = deque(maxlen=_LINES)

    async def add(self, data: bytes) -> tuple[str, ...]:
        """Append output and return the lines that are complete now."""
        *complete, rest = (self._line + data.decode("utf-8", "replace")).split("\n")
        self._line = rest[-_LINE_LENGTH:]
        lines = tuple(_printable(line) for line in complete)
        self._lines.extend(lines)
        await asyncio.to_thread(self._append, data)
        return lines

    def last_lines(self, count: int) -> tuple[str, ...]:
        """Return the last `count` lines that are not empty."""
        lines = [line for line in (*self._lines, _printable(self._line)) if line]
        return tuple(lines[-count:])

    def _append(self, data: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size + len(data) > self._file_bytes:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                file.write(data)
        except OSError as error:
            # A log that cannot be written must not stop the model; the error is shown with the last lines.
            self._lines.append(f"({self.path} cannot be written: {error.strerror})")


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line).strip()[:_LINE_LENGTH]
