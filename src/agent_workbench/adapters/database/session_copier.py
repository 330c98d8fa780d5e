"""Copier of one session: its lines go to the database in order, in the background, after they are durable here."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from msgspec.structs import replace

from agent_workbench.adapters.database.copy_tools import CopyState, CopyTools
from agent_workbench.adapters.database.journal_rows import (
    BATCH_BYTES,
    LEASE_SECONDS,
    RENEW_SECONDS,
    follows_push,
    lease_lost,
    ready_lines,
    waiting_lines,
)
from agent_workbench.core.background import in_background
from agent_workbench.core.database_report import Backlog
from agent_workbench.core.errors import DatabaseDownError, LockedError, WorkbenchError, error_text
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.shared_state import StoredLine

FIRST_PAUSE = 1.0
"""Time before copying is tried again; then twice as long each time."""
LONGEST_PAUSE = 30.0
_ANSWER_SECONDS = 10.0
"""Longest time that the work, or its end, waits for a copy."""


class SessionCopier:
    """Copies what a session has behind `state`, and holds its lease.

    Without the database it waits and goes on by itself. `state.fence` is 0 while no lease was got yet.
    """

    def __init__(self, session: SessionId, tools: CopyTools, state: CopyState, head: SignedHead | None) -> None:
        self._session = session
        self._tools = tools
        self._state = state
        self._head = head
        self._waiting: tuple[StoredLine, ...] = ()
        self._news = asyncio.Event()
        self._moved = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._held_until = tools.clock.monotonic_seconds() + LEASE_SECONDS if state.fence and head else 0.0
        self._closing = False
        self._since = 0.0
        self._noting: list[asyncio.Task[None]] = []
        self.lost: LockedError | None = None
        self.cause = ""
        self.written = state.seq
        """Number of the newest line in the journal."""

    @property
    def fence(self) -> int:
        """The number of the lease, 0 if none was got yet."""
        return self._state.fence if self._held_until else 0

    @property
    def backlog(self) -> Backlog:
        """Lines of this session that wait to be copied, and since when."""
        lines = max(0, self.written - self._state.seq)
        return Backlog(lines, self._tools.clock.monotonic_seconds() - self._since, self.cause) if lines else Backlog()

    def start(self) -> None:
        """Begin to copy in the background."""
        self._working = in_background(self._work())

    def tell(self, seq: int) -> None:
        """Take note of a line that is durable here."""
        if self.written <= self._state.seq:
            self._since = self._tools.clock.monotonic_seconds()
        self.written = max(self.written, seq)
        self._news.set()

    async def require_lease(self) -> None:
        """Raise `LockedError` if the lease was taken over; it is asked for if it may have run out meanwhile."""
        if self.lost is None and self._held_until and self._tools.clock.monotonic_seconds() >= self._held_until:
            with suppress(WorkbenchError):  # without an answer the work goes on
                await self._renew()
        if self.lost is not None:
            raise self.lost

    async def copied(self, seq: int) -> None:
        """Wait until a line was copied, or cannot be now; raise `LockedError` if the lease was taken over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                while self.lost is None and self._state.seq < seq and not self.cause and not self._closing:
                    self._moved.clear()
                    await self._moved.wait()
        if self.lost is not None:
            raise self.lost

    async def finish(self) -> None:
        """Copy what is left while the database answers, give the lease back, and end."""
        try:
            await self.copied(self.written)
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._push()
        except (TimeoutError, WorkbenchError):
            pass  # the next process copies the rest
        await self.stop()
        if self.fence and self.lost is None:
            with suppress(WorkbenchError, TimeoutError):
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._tools.leases.release(self._session, self.fence)

    async def stop(self) -> None:
        """End without copying more."""
        self._closing = True
        self._moved.set()
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, *self._noting, return_exceptions=True)

    async def _work(self) -> None:
        pause = FIRST_PAUSE
        while self.lost is None:
            wait = RENEW_SECONDS
            try:
                await self._step()
                pause = FIRST_PAUSE
                if self.cause:
                    await self._note("")
            except LockedError as error:
                await self._lose(error)
                break
            except WorkbenchError as error:
                await self._note(error_text(error))
                wait, pause = pause, min(LONGEST_PAUSE, pause * 2)
            self._moved.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    if self.cause:
                        await asyncio.sleep(wait)
                    await self._news.wait()
        self._moved.set()

    async def _step(self) -> None:
        """Get the lease if there is none, copy all that can be copied, and prolong the lease."""
        if not self._held_until:
            await self._claim()
        self._news.clear()
        copied = False
        while await self._copy_batch():
            copied = True
            self._moved.set()
        if not copied and self._tools.clock.monotonic_seconds() >= self._held_until - LEASE_SECONDS + RENEW_SECONDS:
            await self._renew()

    async def _claim(self) -> None:
        """Get the lease that could not be had when the session was opened, unless another machine went on."""
        tools, session = self._tools, self._session
        fence = await tools.leases.claim(session)
        try:
            head = await tools.newest_head(session)
            at = await tools.position(head)
            if at is None:
                raise lease_lost(session, self._state.fence)
            self._state = replace(self._state, fence=fence, seq=at.seq, hash=at.hash, offset=at.end)
            self._waiting = ()
            self._head = await tools.signed(session, at.seq, at.hash, fence)
            await tools.rows.copy(self._head)
            await asyncio.to_thread(tools.states.put, session, self._state)
        except BaseException:
            with suppress(WorkbenchError):
                await tools.leases.release(session, fence)
            raise
        self._prolonged()

    async def _copy_batch(self) -> bool:
        """Copy the next lines; return False if there are none that can be copied."""
        tools, session = self._tools, self._session
        self._waiting = await asyncio.to_thread(waiting_lines, tools.copies, session, self._state.offset)
        if self._waiting:
            self.written = max(self.written, self._waiting[-1].seq)
        lines = ready_lines(self._waiting)
        if not lines:
            return False
        if follows_push(lines[0]):
            await self._push(if_missing=True)
        await tools.copy_blobs(session, lines)
        last = lines[-1]
        head = await tools.signed(session, last.seq, last.hash, self._state.fence)
        await tools.rows.copy(head, lines)
        self._prolonged()
        self._head = head
        self._state = replace(self._state, seq=last.seq, hash=last.hash, offset=last.end)
        await asyncio.to_thread(tools.states.put, session, self._state)
        return True

    async def _push(self, *, if_missing: bool = False) -> None:
        """Push what the journal names, with the newest head that the database has; the lease is kept meanwhile."""
        if self._tools.refs is not None and self._head is not None:
            await _renewing(self._tools.refs.push(self._head, if_missing=if_missing), self._renew)

    async def _renew(self) -> None:
        if await self._tools.leases.renew(self._session, self._state.fence):
            self._prolonged()
        else:
            await self._lose(lease_lost(self._session, self._state.fence))

    def _prolonged(self) -> None:
        self._held_until = self._tools.clock.monotonic_seconds() + LEASE_SECONDS

    async def _lose(self, error: LockedError) -> None:
        self.lost = error
        self._moved.set()
        self._noting.append(in_background(self._note_loss(error)))
        await asyncio.shield(self._noting[-1])

    async def _note_loss(self, error: LockedError) -> None:
        """Name what was not copied before another machine went on, and keep it from being copied."""
        with suppress(WorkbenchError):
            lines = await asyncio.to_thread(self._tools.copies.lines, self._session, self._state.offset, BATCH_BYTES)
            if lines:
                folder = self._tools.copies.folder(self._session)
                kept = f"events {lines[0].seq} to {lines[-1].seq} were not copied before; they stay in {folder}"
                self.lost = LockedError(f"{error}; {kept}", holder=error.holder, advice=error.advice)
        await self._note(str(error), fenced=True)

    async def _note(self, cause: str, *, fenced: bool = False) -> None:
        """Keep, for other processes, why nothing is copied now."""
        if cause == self.cause and not fenced:
            return
        self.cause = cause
        self._state = replace(self._state, cause=cause, fenced=fenced)
        with suppress(WorkbenchError):  # a full disk stops the session itself
            await asyncio.to_thread(self._tools.states.put, self._session, self._state)


async def _renewing(pushing: Coroutine[None, None, object], renew: Callable[[], Awaitable[None]]) -> None:
    """Wait for a push, which may be slow, and renew the lease as often as it is due."""
    push = asyncio.ensure_future(pushing)
    try:
        while not (await asyncio.wait({push}, timeout=RENEW_SECONDS))[0]:
            with suppress(DatabaseDownError):
                await renew()
        push.result()
    finally:
        push.cancel()
        await asyncio.gather(push, return_exceptions=True)
