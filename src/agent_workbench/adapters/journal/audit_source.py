"""Journals as the source of the audit's index: every line is proved, and only those that it needs are decoded."""

import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.journal.blobs import JOURNAL, Blobs
from agent_workbench.adapters.journal.line_format import decode_line
from agent_workbench.adapters.journal.reader import FIRST_KIND, LineIndex
from agent_workbench.adapters.journal.session_list import session_folders
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded, SessionStarted
from agent_workbench.core.events.codec import decode_event
from agent_workbench.core.history.audit_records import AuditRecord
from agent_workbench.core.history.audit_trail import AUDITED_KINDS, AuditTrail, joined_costs
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.ports.audit_index import JournalGrowth, JournalMark, JournalStamp
from agent_workbench.system.folder_trees import open_regular

_HEAD = re.compile(rb'\{"v":\d+,"seq":(\d{1,18}),"time":"[^"]*","kind":"([a-z_]+)"')
_TAIL = re.compile(rb'"prev":"([0-9a-f]{64}|)","hash":"([0-9a-f]{64})"\}\Z')
_TAIL_BYTES = 66
_LONGEST_TAIL = 148


class JournalSource:
    """Implements `core.ports.audit_index.AuditSource` for the journals below `folder`.

    `is_own` tells if the session in a folder was begun by this user on this machine.
    """

    def __init__(self, folder: Path, is_own: Callable[[Path], bool]) -> None:
        self._folder = folder
        self._is_own = is_own

    def stamps(self) -> tuple[JournalStamp, ...]:
        """Return the stamp of every journal."""
        found = []
        for directory in session_folders(self._folder):
            try:
                told = os.lstat(directory / JOURNAL)
            except OSError:
                continue
            found.append(JournalStamp(SessionId(directory.name), told.st_size, told.st_mtime_ns, told.st_ino))
        return tuple(found)

    def read(self, session: SessionId, mark: JournalMark | None) -> JournalGrowth:
        """Return what a journal has behind `mark`, or all of it if the line before the mark is another one."""
        directory = self._folder / session
        try:
            with os.fdopen(open_regular(directory / JOURNAL), "rb") as file:
                grown = mark is not None and mark.position > 0 and _ends_at(file.fileno(), mark)
                file.seek(mark.position if mark is not None and grown else 0)
                text = file.read()
        except OSError as error:
            return JournalGrowth((), _START, problem=f"it could not be read: {error.strerror}")
        found = _Reading(mark if mark is not None and grown else _START, directory)
        problem = found.read(LineIndex(text))
        return JournalGrowth(
            joined_costs(found.records, found.parent_seq + 1),
            found.mark(),
            grown=grown,
            problem=problem,
            ours=self._is_own(directory),
            parent=found.parent,
            parent_seq=found.parent_seq,
        )


_START = JournalMark(0, -1, "", AuditTrail())


def _ends_at(descriptor: int, mark: JournalMark) -> bool:
    """Return True if a line with the mark's hash ends at its position."""
    end = os.pread(descriptor, _TAIL_BYTES + 1, max(0, mark.position - _TAIL_BYTES - 1))
    return end == b'%s"}\n' % mark.hash.encode("ascii")


class _Reading:
    """The lines of one journal behind a mark, proved one after the other."""

    def __init__(self, mark: JournalMark, directory: Path) -> None:
        session = SessionId(directory.name)
        self._blobs = Blobs(directory)
        trail = mark.trail
        self._trail = AuditTrail(
            session, trail.task, trail.service, trail.intent, trail.worker, trail.commit, dict(trail.waiting)
        )
        self._session = session
        self._position, self._seq, self._hash = mark.position, mark.seq, mark.hash
        self.records: list[AuditRecord] = []
        self.parent, self.parent_seq = NO_SESSION, -1

    def read(self, lines: LineIndex) -> str:
        """Read the lines up to the first one that does not fit; return what is wrong with it, empty if all fit."""
        for raw in lines:
            try:
                self._add(raw)
            except (JournalError, ValueError) as error:
                return f"line {self._seq + 2}: {error}"
        return "" if self._seq >= 0 else "no event was recorded"

    def mark(self) -> JournalMark:
        """Return the place behind the last line that fits."""
        return JournalMark(self._position, self._seq, self._hash, self._trail)

    def _add(self, raw: bytes) -> None:
        line = _proved(raw, self._seq + 1, self._hash)
        if line.kind in AUDITED_KINDS:
            decoded = decode_line(raw)
            body = self._blobs.restore_long_texts(decoded.body) if b'{"blob":"' in raw else decoded.body
            recorded = Recorded(decoded.seq, decoded.time, decode_event(decoded.kind, body), decoded.hash)
            if isinstance(recorded.event, SessionStarted):
                self._begin(recorded.event)
            self.records += self._trail.add(recorded)
        self._position, self._seq, self._hash = self._position + len(raw) + 1, line.seq, line.hash

    def _begin(self, started: SessionStarted) -> None:
        if started.session != self._session:
            raise JournalError(f"it is the journal of session {started.session}")
        if started.parent is not None and started.parent_seq is not None:
            self.parent, self.parent_seq = started.parent, started.parent_seq


class _Line(Struct, frozen=True):
    """What a line is proved by, without its body."""

    seq: int
    kind: str
    hash: str


def _proved(raw: bytes, seq: int, prev: str) -> _Line:
    """Return a line whose hash, number and predecessor fit; raise `JournalError` saying what does not."""
    head = _HEAD.match(raw)
    tail = _TAIL.search(raw, max(0, len(raw) - _LONGEST_TAIL))
    if head is None or tail is None:
        raise JournalError("not a line of a journal")
    if int(head[1]) != seq:
        raise JournalError(f"seq is {int(head[1])}, {seq} belongs here")
    if tail[1].decode("ascii") != prev:
        raise JournalError("prev is not the hash of the line before")
    stored = tail[2].decode("ascii")
    if sha256(raw[:-_TAIL_BYTES] + raw[-2:]).hexdigest() != stored:
        raise JournalError("hash does not fit the content")
    kind = head[2].decode("ascii")
    if (kind == FIRST_KIND) != (seq == 0):
        raise JournalError(f"kind is {kind}; a journal has {FIRST_KIND} in its first line and only there")
    return _Line(seq, kind, stored)
