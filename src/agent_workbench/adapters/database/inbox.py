"""The inbox of machines that share a database: decisions count by their signatures, and `LISTEN` tells of new ones."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.core.errors import DatabaseDownError, DecisionRefused, SigningError, StorageError, error_text
from agent_workbench.core.history.signed_approvals import (
    decision_message,
    decision_text,
    read_decision,
    signed_decision,
)
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxDecision, Reference
from agent_workbench.core.ports.shared_state import Signatures
from agent_workbench.core.ports.stores import Inbox
from agent_workbench.core.signed import SignedPurpose, SignedText
from agent_workbench.core.text.amounts import quoted

CHANNEL = "agent_decisions"
MOST_ROWS = 1_000
"""Rows of a session that are judged; more of them are a flood, which is told."""
MOST_TOLD = 20
KEPT_SECONDS = 10.0
"""Seconds after which decisions are read again although no notification came."""
POLL_SECONDS = 1.0
AWAY_SECONDS = 5.0
"""Pause in seconds after a database did not answer."""
MOST_BYTES = 16_000_000
"""Bytes of a session's rows that are read, the shortest first: whoever owns the database can lift its own limits."""
_READ = """\
SELECT id, proposal, digest, text, signature FROM (
    SELECT *, sum(octet_length(text) + octet_length(signature) + octet_length(proposal) + octet_length(digest))
        OVER (ORDER BY octet_length(text) + octet_length(signature), id) AS bytes
    FROM agent_decisions WHERE session = %s
) AS sized WHERE bytes <= %s ORDER BY bytes LIMIT %s"""
_SESSIONS = "SELECT DISTINCT session FROM agent_decisions LIMIT %s"
MOST_SESSIONS = 10_000
_PUT = "INSERT INTO agent_decisions (session, proposal, digest, text, signature) VALUES (%s, %s, %s, %s, %s)"
_REMOVE = "DELETE FROM agent_decisions WHERE session = %s AND proposal = %s AND digest = %s"
_FORGET = "DELETE FROM agent_decisions WHERE made < clock_timestamp() - interval '90 days'"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('agent_decisions ' || %s, 0))"
_MOST_DIGITS = 20
_NOTIFY = "SELECT pg_notify(%s, %s)"

RETRY_SECONDS = 1.0


class _Look(Struct, frozen=True):
    """Decisions about a session that were read from the database: those that count, and the reasons against others."""

    decisions: tuple[InboxDecision, ...] = ()
    refused: tuple[str, ...] = ()
    at: float = 0.0
    news: int = -1


class _Asked(Struct, frozen=True):
    """The sessions with decisions in the database; `whole` unless there are too many."""

    at: float = -KEPT_SECONDS
    sessions: frozenset[str] = frozenset()
    whole: bool = False


class DatabaseInbox:
    """`core.ports.stores.Inbox` of this machine (`local`) and of the database.

    `repository` returns the repository's name in the database: decisions made in another one do not count.
    A decision about a session that is `elsewhere` goes to the database, signed; any other stays on this machine. Both
    are read. Of rows about one proposal the first that counts is its decision.
    """

    def __init__(
        self,
        database: Database,
        signatures: Signatures,
        local: Inbox,
        elsewhere: Callable[[SessionId], Awaitable[bool]],
        seconds: Callable[[], float] = monotonic,
        *,
        repository: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._database = database
        self._signatures = signatures
        self._local = local
        self._elsewhere = elsewhere
        self._find_repository = repository
        self._repository = ""
        self._seconds = seconds
        self._notifications = Notifications(database, CHANNEL)
        self._looks: dict[SessionId, _Look] = {}
        self._asked = _Asked(seconds() - KEPT_SECONDS)
        self._away = ""
        self._away_until = 0.0

    async def put(self, decision: InboxDecision) -> InboxDecision:
        reference = decision.reference
        if not await self._elsewhere(reference.session):
            return await self._local.put(decision)
        decision = replace(decision, repository=await self._repository_name())
        principal, text = await self._signatures.principal(), decision_text(decision)
        signature = await self._signatures.sign(SignedPurpose.DECISION, decision_message(text))
        async with self._database.connection() as connection:
            await connection.execute(_LOCK, (str(reference),))
            decisions, _ = await self._judged(reference.session, await _rows(connection, reference.session))
            first = next((each for each in decisions if each.reference == reference), None)
            if first is not None:
                raise DecisionRefused(
                    f"{reference.proposal} was decided already: {first.verdict.past} by {first.made_by} "
                    f"at {first.made_at}",
                    advice="the machine that has its session records it",
                )
            await connection.execute(_FORGET)
            key = (reference.session, reference.proposal, reference.digest)
            await connection.execute(_PUT, (*key, text, signature))
            await connection.execute(_NOTIFY, (CHANNEL, reference.session))
        self._looks.pop(reference.session, None)
        return signed_decision(decision, principal, SignedText(text, signature))

    async def pending(self, session: SessionId) -> tuple[InboxDecision, ...]:
        local = await self._local.pending(session)
        shared = (await self._look(session)).decisions
        return tuple(sorted((*local, *shared), key=lambda each: each.made_at))

    def refused(self, session: SessionId) -> tuple[str, ...]:
        look = self._looks.get(session, _Look())
        return (*self._local.refused(session), *((self._away,) if self._away else ()), *look.refused)

    async def wait(self, session: SessionId, known: Collection[Reference] = ()) -> tuple[InboxDecision, ...]:
        looking = (self._local.wait(session, known), self._wait(session, known))
        waiting = [asyncio.ensure_future(each) for each in looking]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            found = [decision for each in waiting if each.done() for decision in each.result()]
            return tuple(sorted(found, key=lambda each: each.made_at))
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def remove(self, decision: InboxDecision) -> None:
        if decision.signed is None:
            await self._local.remove(decision)
            return
        reference = decision.reference
        self._looks.pop(reference.session, None)
        with suppress(DatabaseDownError):  # it is found again when the database answers, and known as recorded
            async with self._database.connection() as connection:
                await connection.execute(_REMOVE, (reference.session, reference.proposal, reference.digest))
                await connection.execute(_NOTIFY, (CHANNEL, reference.session))
        self._looks.pop(reference.session, None)

    async def close(self) -> None:
        """Stop listening."""
        await self._notifications.close()

    async def _wait(self, session: SessionId, known: Collection[Reference]) -> tuple[InboxDecision, ...]:
        self._notifications.listen()
        while True:
            news = self._notifications.count(session)
            found = tuple(each for each in (await self._look(session)).decisions if each.reference not in known)
            if found:
                return found
            seconds = KEPT_SECONDS if self._notifications.listening else POLL_SECONDS
            await self._notifications.wait(session, news, seconds)

    async def _look(self, session: SessionId) -> _Look:
        """Return what the database has for a session; what was read before while it does not answer."""
        known, now = self._looks.get(session), self._seconds()
        news = self._notifications.count(session)
        if known is not None:
            self._notifications.listen()  # somebody looks again and again
            unchanged = self._notifications.listening and known.news == news
            if unchanged and (now < known.at + KEPT_SECONDS or await self._still_empty(session, known, now)):
                return known
        if now < self._away_until:
            return known or _Look()
        try:
            async with self._database.connection() as connection:
                rows = await _rows(connection, session)
            decisions, refused = await self._judged(session, rows)
        except (StorageError, SigningError) as error:
            self._away = f"decisions from other machines are not seen: {error_text(error)}"
            self._away_until = now + AWAY_SECONDS
            return known or _Look()
        self._away = ""
        self._looks[session] = _Look(decisions, refused, now, news)
        return self._looks[session]

    async def _still_empty(self, session: SessionId, known: _Look, now: float) -> bool:
        """Return True if nothing is kept for a session, by one question for all sessions every few seconds."""
        if known.decisions or known.refused or now < self._away_until:
            return False
        if now >= self._asked.at + KEPT_SECONDS:
            try:
                async with self._database.connection() as connection:
                    rows = await (await connection.execute(_SESSIONS, (MOST_SESSIONS,))).fetchall()
            except StorageError:
                return False  # the look at the session says why
            self._asked = _Asked(now, frozenset(str(row[0]) for row in rows), whole=len(rows) < MOST_SESSIONS)
        return self._asked.whole and session not in self._asked.sessions

    async def _repository_name(self) -> str:
        """Return the name of the repository that the decisions of this inbox are about."""
        if not self._repository and self._find_repository is not None:
            self._repository = await self._find_repository()
        return self._repository

    async def _judged(
        self, session: SessionId, rows: Sequence[tuple[object, ...]]
    ) -> tuple[tuple[InboxDecision, ...], tuple[str, ...]]:
        """Return the decisions that count, the first about each proposal, and why other rows do not."""
        counted: dict[Reference, InboxDecision] = {}
        refused: list[str] = []
        for number, proposal, digest, text, signature in rows:
            found = await self._judge(session, f"{proposal}@{digest}", str(text), str(signature))
            if isinstance(found, str):
                about = quoted(str(proposal))
                refused.append(f"decision {number} in the database, about {about}, does not count: {found}")
            else:
                counted.setdefault(found.reference, found)
        if len(refused) > MOST_TOLD:
            refused[MOST_TOLD:] = [f"more than {MOST_TOLD} decisions in the database about {session} do not count"]
        if len(rows) > MOST_ROWS:
            refused.append(f"the database has more than {MOST_ROWS:,} decisions about {session}; no more are read")
        return tuple(sorted(counted.values(), key=lambda each: each.made_at)), tuple(refused)

    async def _judge(self, session: SessionId, about: str, text: str, signature: str) -> InboxDecision | str:
        """Return the decision of a row, or why it does not count."""
        message = decision_message(text)
        principal = await self._signatures.signer(SignedPurpose.DECISION, message, signature)
        if not principal:
            return await self._signatures.problem(SignedPurpose.DECISION, message, signature)
        decision = read_decision(text)
        if isinstance(decision, str):
            return f"{decision} ({principal})"
        if str(decision.reference) != f"{session}/{about}":
            # Without the digest: who lists the inbox has not seen the proposal.
            return f"{principal} made it about {decision.reference.name}, as it was shown then"
        if decision.repository != await self._repository_name():
            return f"{principal} made it in another repository"
        return signed_decision(decision, principal, SignedText(text, signature))


async def _rows(connection: Connection, session: SessionId) -> Sequence[tuple[object, ...]]:
    rows = await (await connection.execute(_READ, (session, MOST_BYTES, MOST_ROWS + 1))).fetchall()
    return sorted(rows, key=lambda row: str(row[0]).zfill(_MOST_DIGITS))


class Notifications:
    """Counts of the notifications on a channel, by payload; a connection that was lost and opened again raises all."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = channel
        self._counts: dict[str, int] = {}
        self._gaps = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.listening = False

    def listen(self) -> None:
        """Begin to listen, unless that is done."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())

    def count(self, payload: str) -> int:
        """Return a number that grows with each notification that was, or may have been, about the payload."""
        return self._counts.setdefault(payload, 0) + self._gaps

    async def wait(self, payload: str, count: int, seconds: float) -> None:
        """Return when `count` is not the number of the payload any more, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.count(payload) == count:
                    await self._news.wait()

    async def close(self) -> None:
        """Stop listening; a later `listen` begins again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen(self) -> None:
        try:
            while True:
                with suppress(StorageError):
                    async with self._database.listener(self._channel) as connection:
                        self.listening = True
                        self._gaps += 1
                        self._wake()
                        async for each in connection.notifies():
                            if each.payload in self._counts:  # anybody can notify, of anything
                                self._counts[each.payload] += 1
                                self._wake()
                self.listening = False
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            self.listening = False

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
