"""Protocols of what machines share beside the stores, also journals as bytes. Nothing that they read is trusted."""

from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.signed import SignedPurpose
from agent_workbench.core.workers import DispatchPause, Fleet, WorkerRecord

NO_LINE = -1
"""Number of the last line of an empty journal."""


class Signatures(Protocol):
    """Signatures with this machine's key, and the judgement of signatures that others made.

    Who may sign for which purpose is set on each machine by its user. This machine's own key counts here for every
    purpose. `core.signed.signed_message` makes the messages.
    """

    async def sign(self, purpose: SignedPurpose, message: bytes) -> str:
        """Return a signature of the message for one purpose; raise `SigningError` if the key cannot be used."""

    async def signer(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        """Return the principal whose key signed exactly this message for this purpose; empty if it does not count.

        That is a signature that is missing, malformed, of an unknown or revoked key, of a key that may not sign for
        this purpose or not at this time, or of another message. Raises `SigningError` only if nothing can be judged.
        """

    async def problem(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        """Return why a signature does not count, as the end of a sentence ("… does not count: "); empty if it does."""

    async def key_is_unknown(self, purpose: SignedPurpose, signature: str) -> bool:
        """Return True if the key that a signature names may not sign for this purpose here: elsewhere it may."""

    async def principal(self) -> str:
        """Return the principal of this machine's key, such as `ada@laptop`; raise `SigningError`."""

    async def public_line(self, purposes: Collection[SignedPurpose]) -> str:
        """Return the line that allows this machine's key for `purposes` on other machines; raise `SigningError`."""


class SessionRefs(Protocol):
    """A session's checkpoints, bases, branches and signed heads in a git remote that machines share.

    Each push moves `refs/agent/audit/<session>`, whose commits carry the heads, from where this machine knows it. So
    a writer whose lease was taken over is refused as a whole, whenever its push arrives. The user's checkout, index,
    `HEAD` and other refs never change. Every method raises `StorageError` if the remote does not answer in time, is
    full, or has no place for the refs, and `JournalError` for what it has and cannot be right.
    """

    async def check(self) -> int:
        """Return the number of sessions at the remote, after it was asked; raise `ConfigError` for its address."""

    async def task_commit(self, task: TaskId) -> str:
        """Return the commit of the task's branch at the remote, empty if there is no such branch."""

    async def push(self, head: SignedHead, *, if_missing: bool = False) -> tuple[str, ...]:
        """Push all that this machine has of the head's session, and the head: all of it or nothing.

        `head` is the newest that the database has, and signed: what the remote has was in the database before.
        `if_missing`: not for the head alone, while the remote has everything else under this fence. Returns
        sentences about branches that stay as they are, for the remote has other work there. Raises `LockedError` if a
        larger fence took the session over.
        """

    async def take_over(self, head: SignedHead, recorded: Sequence[Recorded]) -> None:
        """Move the audit ref to the larger fence of `head`: from then on other writers are refused.

        `recorded` are the session's events as the database has them. Raises `LockedError` if the remote has this
        fence or a larger one, `JournalError` if a head at the remote does not fit the events: they were changed or cut.
        """

    async def fetch(self, session: SessionId, recorded: Sequence[Recorded]) -> SignedHead | None:
        """Bring what these proved events name into this repository, and return the newest head (None: there is none).

        Refs and branches get here what the events say, never what the remote says; what this machine had under the
        same name is kept under `refs/agent/<session>/withdrawn/`. Raises `JournalError` if the remote has another
        object than the events name, or a head that does not fit them, `WorkspaceError` if a branch here has other work.
        """

    async def heads(self, session: SessionId) -> tuple[SignedHead, ...]:
        """Return the newest head of each lease, oldest first, if its signature counts.

        They are those of the remote, or those seen there last while it does not answer. Raises `JournalError` if the
        remote's are no continuation of those seen here.
        """

    async def remove(self, session: SessionId, refs: Mapping[str, str]) -> None:
        """Remove refs of a session from the remote that still have these objects there, all or none.

        The audit ref stays. Raises `LockedError` if another machine continued the session.
        """


class WorkerRegistry(Protocol):
    """The registered workers of one queue, and the pause of their dispatch. Every method may raise `StorageError`.

    What it says is not trusted: it decides where a task may go, and nothing else.
    """

    async def beat(self, worker: WorkerRecord) -> WorkerRecord | None:
        """Record a heartbeat and return the worker as it is registered; None if a newer process has its name.

        The first beat of an `instance` registers it and takes the name over. `draining` stays as it was ordered.
        """

    async def end(self, worker: WorkerRecord) -> None:
        """Record that the process ends: the worker is offline from now on, unless a newer process has its name."""

    async def drain(self, name: str, *, draining: bool) -> None:
        """Order a worker to take nothing new, or to take tasks again; raise `UsageError` for an unknown one."""

    async def remove(self, name: str) -> None:
        """Remove a worker; raise `UsageError` for an unknown one, `LockedError` for one that is not offline."""

    async def fleet(self) -> Fleet:
        """Return the registered workers, the time of their clock, and the pause."""

    async def set_pause(self, pause: DispatchPause | None) -> None:
        """Keep the pause of dispatch, or its end."""


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
