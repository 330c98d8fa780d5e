"""Lines of a worker's log, as text or JSON, on standard output and in a file."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from agent_workbench.cli.output import drop_output, say_aside
from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.workers import LogLevel, WorkerLine

MOST_CHARS = 2_000
_ORDER = tuple(LogLevel)


@contextmanager
def log_lines(form: str, level: str, file: Path | None) -> Iterator[Callable[[WorkerLine], None]]:
    """Yield a function that writes a line; raise `UsageError` for an unknown level, `StorageError` for the file."""
    try:
        least = LogLevel(level.strip().lower() or LogLevel.INFO)
    except ValueError:
        known = ", ".join(LogLevel)
        raise UsageError(f"the log level {quoted(level)} is unknown", advice=f"LOG_LEVEL is one of {known}") from None
    kept = _open(file) if file is not None else None
    spell = _as_json if form == "json" else _as_text
    try:
        sinks = _Sinks(kept)
        yield lambda line: sinks.write(spell(line)) if _ORDER.index(line.level) >= _ORDER.index(least) else None
    finally:
        if kept is not None:
            kept.close()


class _Sinks:
    """Standard output and a file; the work goes on where one of them cannot be written."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self._file_fails = False

    def write(self, line: str) -> None:
        try:
            print(line, flush=True)
        except OSError:
            drop_output()  # the reader has gone
        if self._file is not None:
            self._keep(line, self._file)

    def _keep(self, line: str, file: TextIO) -> None:
        try:
            file.write(f"{line}\n")
            file.flush()
        except OSError as error:
            if not self._file_fails:
                say_aside(f"the log file cannot be written: {error.strerror}; the worker goes on without it")
            self._file_fails = True
        else:
            self._file_fails = False


def _open(path: Path) -> TextIO:
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        return os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError(
            f"the log file {path} cannot be opened: {error.strerror}", advice="name another file with --log-file"
        ) from error


def _as_text(line: WorkerLine) -> str:
    named = " ".join(filter(None, (line.time[:19] + "Z", f"{line.level:<7}", line.task)))
    return f"{named} {sanitize_line(line.text, MOST_CHARS)}"


def _as_json(line: WorkerLine) -> str:
    told = {
        "time": line.time,
        "level": line.level,
        "event": line.event,
        "task": line.task,
        "session": line.session,
        "text": sanitize_line(line.text, MOST_CHARS),
    }
    return json.dumps({name: value for name, value in told.items() if value}, ensure_ascii=True)
