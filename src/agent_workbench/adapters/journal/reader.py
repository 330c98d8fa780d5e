"""Reader of a journal: each line is proved by its hash, its number and its blobs."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.journal.blobs import Blobs
from agent_workbench.adapters.journal.line_format import JournalLine, claimed_hash, decode_line
from agent_workbench.adapters.journal.line_index import LineIndex
from agent_workbench.adapters.journal.session_files import JOURNAL, read_regular
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded
from agent_workbench.core.events.codec import decode_event
from agent_workbench.core.events.output_digests import with_digests
from agent_workbench.core.history.journal_proof import Problem, VerifyReport
from agent_workbench.system.atomic_files import storage_error

FIRST_KIND = "session_started"
LAST_KIND = "session_left"


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
