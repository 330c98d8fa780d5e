"""Port to journals as bytes: what is copied to other machines, and what is received from them."""

from collections.abc import Callable
from hashlib import sha256
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import JournalError
from agent_workbench.core.ids import SessionId

NO_LINE = -1
"""Number of the last line of an empty journal."""


class BlobName(Struct, frozen=True):
    """A text beside the journal: SHA-256 of its content, and its length."""

    sha: str
    bytes: int


def require_blob(name: BlobName, data: bytes) -> None:
    """Raise `JournalError` if `data` is not the text of this name."""
    if len(data) != name.bytes or sha256(data).hexdigest() != name.sha:
        raise JournalError(f"blob {name.sha} was changed: it has {len(data)} bytes, {name.bytes} were written")


class StoredLine(Struct, frozen=True):
    """One line of a journal without its newline, and what it claims. `end` is the offset behind its newline."""

    seq: int
    hash: str
    kind: str
    data: bytes
    end: int = 0
    blobs: tuple[BlobName, ...] = ()


class JournalEnd(Struct, frozen=True):
    """The last whole line of a journal: its number and hash, and the offset behind it."""

    seq: int = NO_LINE
    hash: str = ""
    offset: int = 0


class IncomingLines(Protocol):
    """Lines that continue a journal. They are no part of it before `keep`, and nothing is left of them after `drop`.

    Until `drop` no other process receives lines for the journal, whose `end` it is.
    """

    @property
    def end(self) -> JournalEnd:
        """The end of the journal before these lines."""

    def add(self, data: bytes) -> str:
        """Take the next line and return its hash; raise `JournalError` if it does not follow."""

    def keep(self) -> None:
        """Make all lines a part of the journal, durably."""

    def drop(self) -> None:
        """Remove what was not kept."""


class JournalCopies(Protocol):
    """Journals in a folder, as bytes. Everything blocks, and may raise `StorageError`.

    A line is proved only in itself and against the one before. Whether the last one is the right one is for the caller
    to know.
    """

    def is_own(self, session: SessionId) -> bool:
        """Return True if the session was begun on this machine, or taken over by it."""

    def end(self, session: SessionId) -> JournalEnd:
        """Return the end of a journal, an empty one if there is none; raise `JournalError` for a damaged last line."""

    def size(self, session: SessionId) -> int:
        """Return the length of a journal in bytes, 0 if there is none."""

    def lines(self, session: SessionId, offset: int, max_bytes: int) -> tuple[StoredLine, ...]:
        """Return the whole lines behind `offset`, at least one if there is one; raise `JournalError`."""

    def line(self, session: SessionId, seq: int) -> StoredLine | None:
        """Return a line by its number, None if the journal does not have it; raise `JournalError`."""

    def blob(self, session: SessionId, name: BlobName) -> bytes:
        """Return a text; raise `JournalError` if it is missing or another one."""

    def lacking(self, session: SessionId) -> tuple[BlobName, ...]:
        """Return the texts that the journal names and that are not there."""

    def put_blob(self, session: SessionId, name: BlobName, data: bytes) -> None:
        """Store a text durably; raise `JournalError` if it is another one than is named."""

    def receive(self, session: SessionId) -> IncomingLines:
        """Return the lines that will continue a journal; it is made by `keep` if there is none."""

    def adopt(self, session: SessionId, source: "JournalCopies") -> None:
        """Make the whole journal of another folder a session of this one, begun here as far as this machine goes.

        Raises `LockedError` if the folder has another session of that name.
        """

    def continue_from(self, session: SessionId, source: "JournalCopies", offset: int) -> str:
        """Let the journal go on as another folder's does, which is equal up to `offset`.

        What this one has behind `offset` is moved to a file beside the journal; its path is returned, empty if there
        was nothing. Raises `LockedError` if a process has the journal open.
        """

    def lock(self, session: SessionId) -> Callable[[], None]:
        """Keep every process of this machine from opening the journal until the result is called."""

    def sessions(self) -> tuple[SessionId, ...]:
        """Return all sessions of the folder, newest first."""

    def folder(self, session: SessionId) -> str:
        """Return the path of a session's folder."""
