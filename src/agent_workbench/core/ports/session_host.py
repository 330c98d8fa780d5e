"""Protocols of the session host: what every front end uses to open sessions, steer them and read them."""

from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Protocol

from agent_workbench.core.events import Recorded
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxChoice, InboxFilter, InboxItem, InboxReceipt, Reference
from agent_workbench.core.intents import Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Outcome
from agent_workbench.core.session_request import SessionEnd, SessionRequest


class SessionHandle(Protocol):
    """One session: live, unattended or replayed. All front ends know only this of it."""

    @property
    def session(self) -> SessionId:
        """The session's name, `NO_SESSION` until its journal is open."""

    @property
    def opened_seq(self) -> int:
        """Number of the last event that was recorded before the session was opened here (-1: it is new)."""

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Queue an intent at once and return its outcome when it was carried out, in the order of the calls.

        Every intent is answered: one that no longer fits, or comes after the end, is `Refused` with the reason.
        """

    def events(self, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield all events behind `after_seq` in order, those that are recorded later too; ends with the session."""

    def live(self) -> AsyncGenerator[SessionUpdate]:
        """Yield the newest update, then each newer one; a slow reader misses some. Ends with the session."""

    async def wait(self) -> SessionEnd:
        """Wait for the session's end and return it; raise the `WorkbenchError` that kept it from being opened."""


class SessionHost(Protocol):
    """The sessions of one process, what they share, and the inbox of pending proposals."""

    async def open(self, request: SessionRequest) -> SessionHandle:
        """Open a session.

        An attended one opens in the background: questions to settle before (set-up, trust) are asked through `live`,
        and `wait` raises what kept it from being opened. Any other is open when this returns, or the error is raised.
        """

    async def inbox(self, wanted: InboxFilter) -> Sequence[InboxItem]:
        """Return the proposals that wait in all sessions of the repository, the highest risk first."""

    async def decide(self, reference: Reference, choice: InboxChoice) -> InboxReceipt:
        """Decide the proposal that `reference` (`SESSION/P-14@DIGEST`) names, in whatever process its session is open.

        Raises `DecisionRefused` for a stale reference, `UsageError` for a choice that does not fit, `TrustError` for a
        session from elsewhere, or if a command of the agent started this process.
        """
