"""Composer of a journal's next lines: redacts events, stores long texts as blobs, chains the hashes."""

from pathlib import Path

from agent_workbench.adapters.journal.blobs import Blobs
from agent_workbench.adapters.journal.line_format import encode_line, join_surrogates
from agent_workbench.adapters.journal.reader import FIRST_KIND
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.events.codec import change_texts, encode_event
from agent_workbench.core.events.output_digests import with_digests


class LineComposer:
    """Composes the lines that follow the end of the journal in `directory`. Blocks; for one thread at a time."""

    def __init__(self, directory: Path, redactor: Redactor, last: Recorded | None = None) -> None:
        """Continue after the event `last`, or begin with the first line if there is none."""
        self._redactor = redactor
        self._blobs = Blobs(directory)
        self._next_seq = last.seq + 1 if last else 0
        self._head = last.hash if last else ""

    def next(self, seq: int, time: str, event: Event) -> tuple[bytes, Recorded]:
        """Return the next line and the event as the session keeps it; the blobs of the line are durable by then.

        Raises `JournalError` for an event that does not belong there, `StorageError`.
        """
        if seq != self._next_seq:
            raise JournalError(f"event {seq} cannot be appended, the next one is {self._next_seq}")
        stored = change_texts(event, self._as_recorded)
        kind, body = encode_event(stored)
        if (kind == FIRST_KIND) != (seq == 0):
            raise JournalError(f"{kind} cannot be event {seq}: a journal has {FIRST_KIND} first and only there")
        line, digest = encode_line(seq, time, kind, self._blobs.replace_long_texts(body), self._head)
        return line, Recorded(seq, time, with_digests(stored), digest)

    def advance(self, last: Recorded) -> None:
        """Make `last`, whose line was written, the end of the journal."""
        self._next_seq, self._head = last.seq + 1, last.hash

    def _as_recorded(self, text: str) -> str:
        return self._redactor.redact(join_surrogates(text))
