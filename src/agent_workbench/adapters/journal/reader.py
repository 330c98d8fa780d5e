"""Readers of a journal, recorded or still written by another process: each line is proved."""

import asyncio
import os
from array import array
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.journal.blobs import JOURNAL, Blobs, read_regular
from agent_workbench.adapters.journal.line_format import JournalLine, claimed_hash, decode_line
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded
from agent_workbench.core.events.codec import decode_event
from agent_workbench.core.fold.output_digests import with_digests
from agent_workbench.core.history.journal_proof import Problem, VerifyReport
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.folder_trees import open_regular

FIRST_KIND = "session_started"
LAST_KIND = "session_left"

POLL_SECONDS = 0.25


class LineIndex(Sequence[bytes]):
    """The complete lines of a text, without newlines.

    A list of all lines would double the memory of a long journal.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._starts = array("q", [0])
        at = text.find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find(b"\n", at + 1)

    @property
    def torn(self) -> bytes:
        """The bytes after the last newline: an unfinished line."""
        return self._text[self._starts[-1] :]

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[bytes, ...]: ...

    def __getitem__(self, at: int | slice) -> bytes | tuple[bytes, ...]:
        if isinstance(at, slice):
            return tuple(self[number] for number in range(*at.indices(len(self))))
        number = at if at >= 0 else at + len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no line {at} of {len(self)}")
        return self._text[self._starts[number] : self._starts[number + 1] - 1]


class JournalContent(Struct, frozen=True):
    """Content of a journal; `torn` is an unfinished last line, which was never acknowledged."""

    events: tuple[Recorded, ...]
    torn: bytes = b""

    @property
    def head(self) -> str:
        """The hash of the last line, empty if there is none."""
        return self.events[-1].hash if self.events else ""


def read_journal(directory: Path, *, whole: bool = False) -> JournalContent:
    """Return the events of the session in `directory`, each proved. Blocks.

    Long outputs are shortened to the digests that a session keeps, unless `whole`.

    Raises `JournalError` naming the first line that does not fit and why, `StorageError` if it cannot be read.
    """
    lines, torn = read_lines(directory)
    events = []
    for found in _examine(lines, Blobs(directory)):
        if isinstance(found, Problem):
            raise JournalError(f"{directory / JOURNAL}: {found}", advice=found.advice)
        events.append(found if whole else replace(found, event=with_digests(found.event)))
    return JournalContent(tuple(events), torn)


def verify_journal(directory: Path) -> VerifyReport:
    """Return every problem of the session's journal and blobs. Blocks; raises `JournalError` without a journal."""
    lines, torn = read_lines(directory)
    found = tuple(_examine(lines, Blobs(directory)))
    return VerifyReport(
        hashes=tuple(claimed_hash(line) or "" for line in lines),
        recorded=tuple(each for each in found if isinstance(each, Recorded)),
        problems=tuple(each for each in found if isinstance(each, Problem)),
        torn_bytes=len(torn),
    )


def read_lines(directory: Path) -> tuple[LineIndex, bytes]:
    """Return the journal's complete lines without newlines, and the unfinished rest."""
    path = directory / JOURNAL
    try:
        lines = LineIndex(read_regular(path))
    except FileNotFoundError:
        raise JournalError(f"there is no {path}") from None
    except OSError as error:
        raise storage_error(f"{path} could not be read", error) from error
    return lines, lines.torn


class LineProver:
    """Proves the lines of one journal in their order: number, chain of hashes, and blobs.

    After a line that does not fit, the next one is compared with what that line claims: one wrong byte shows as one
    problem, and not as one in every line behind it.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._seq = 0
        self._prev = ""

    def prove(self, raw: bytes) -> Recorded:
        """Return the event of the next line (without its newline); raise `JournalError` saying what does not fit."""
        seq, prev = self._seq, self._prev
        self._seq, self._prev = seq + 1, claimed_hash(raw) or ""
        line = decode_line(raw)
        self._seq = line.seq + 1
        return _event(line, seq, prev, self._blobs if b'{"blob":"' in raw else None)


def _examine(lines: LineIndex, blobs: Blobs) -> Iterator[Recorded | Problem]:
    """Yield each line's event, or what is wrong with the line."""
    prover = LineProver(blobs)
    for number, raw in enumerate(lines, 1):
        try:
            yield prover.prove(raw)
        except JournalError as error:
            yield Problem(number, str(error), error.advice)


def _event(line: JournalLine, seq: int, prev: str, blobs: Blobs | None) -> Recorded:
    if line.seq != seq:
        raise JournalError(f"seq is {line.seq}, {seq} belongs here")
    if line.prev != prev:
        raise JournalError(f"prev is {line.prev[:12] or 'empty'}, the line before has {prev[:12] or 'none'}")
    if (line.kind == FIRST_KIND) != (seq == 0):
        raise JournalError(f"kind is {line.kind}; a journal has {FIRST_KIND} in its first line and only there")
    body = blobs.restore_long_texts(line.body) if blobs else line.body
    return Recorded(line.seq, line.time, decode_event(line.kind, body), line.hash)


class JournalFollower:
    """Follows the journal in a folder from its first line on; the chain of hashes is proved as it is read."""

    def __init__(self, directory: Path, poll_seconds: float = POLL_SECONDS) -> None:
        """Follow the session in `directory`; nothing is opened yet."""
        self._path = directory / JOURNAL
        self._poll_seconds = poll_seconds
        self._prover = LineProver(Blobs(directory))
        self._offset = 0
        self._identity: tuple[int, int] | None = None

    async def events(self, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield the events after `after_seq`, then each new one, until the caller stops.

        Raises `JournalError` for a line that does not fit, and for a journal that was removed, replaced or cut;
        `StorageError` if it cannot be read.
        """
        while True:
            found = await asyncio.to_thread(self._read)
            for recorded in found:
                if recorded.seq > after_seq:
                    yield recorded
            if not found:
                await asyncio.sleep(self._poll_seconds)

    def _read(self) -> tuple[Recorded, ...]:
        """Return the events of the lines that are whole now and were not read before."""
        try:
            with os.fdopen(open_regular(self._path), "rb") as file:
                self._check(os.fstat(file.fileno()))
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            raise JournalError(f"there is no {self._path}") from None
        except OSError as error:
            raise storage_error(f"{self._path} could not be read", error) from error
        whole = text[: text.rfind(b"\n") + 1]
        try:
            found = tuple(self._prover.prove(line) for line in whole.split(b"\n")[:-1])
        except JournalError as error:
            raise JournalError(f"{self._path}: {error}", advice=error.advice) from error
        self._offset += len(whole)
        return tuple(replace(each, event=with_digests(each.event)) for each in found)

    def _check(self, facts: os.stat_result) -> None:
        """Raise `JournalError` if the file is another one than before, or shorter than what was read of it."""
        identity = (facts.st_dev, facts.st_ino)
        if self._identity not in {None, identity} or facts.st_size < self._offset:
            raise JournalError(f"{self._path} was replaced or cut while it was followed")
        self._identity = identity
