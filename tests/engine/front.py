"""Somebody in front of a live session: waits for what it shows, never for time to pass."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession
from agent_workbench.core.intents import (
    ApproveProposal,
    EditProposal,
    Intent,
    Leave,
    RejectProposal,
    SkipProposal,
    StartTask,
)
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.proposals import Proposal, shown_sha
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import Phase
from agent_workbench.engine.flow import AwaitRetry, Idle, next_move
from agent_workbench.engine.policy import ruling
from agent_workbench.engine.runtime.intent_queue import IntentQueue
from agent_workbench.engine.session.live_session import LiveSession
from tests.engine.stage import T1, Stage

PATIENCE_SECONDS = 20


class Front:
    """Submits intents and waits for updates."""

    def __init__(self, session: SessionHandle) -> None:
        self.session = session
        self._updates = session.live()
        self.now: SessionUpdate | None = None

    async def until(self, condition: Callable[[SessionUpdate], object], what: str = "") -> SessionUpdate:
        """Return the first update, the newest one seen included, of which `condition` is true."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while self.now is None or not condition(self.now):
                    self.now = await anext(self._updates)
        except TimeoutError:
            raise AssertionError(f"never came: {what or condition}; stands at {self._shown()}") from None
        except StopAsyncIteration:
            raise AssertionError(f"ended before: {what or condition}; stood at {self._shown()}") from None
        return self.now

    def _shown(self) -> str:
        if self.now is None:
            return "nothing"
        run = self.now.state.run
        where = f"{run.phase} {run.gate.stage} {run.gate.proposal}" if run else "no run"
        return f"{where}, trouble {self.now.state.trouble}, live {self.now.live}"

    async def submit(self, intent: Intent) -> None:
        """Submit an intent without waiting for its outcome."""
        self.session.submit(intent)

    async def outcome(self, intent: Intent) -> Outcome:
        """Submit an intent and return its outcome."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.session.submit(intent)

    async def start(self) -> None:
        await self.submit(StartTask(T1))

    async def gate(self, kind: Permission) -> Proposal:
        """Return the proposal of this kind, once it waits."""

        def waits(update: SessionUpdate) -> bool:
            waiting = _waiting(update)
            return waiting is not None and waiting.kind is kind

        waiting = _waiting(await self.until(waits, f"a gate of {kind}"))
        assert waiting is not None
        return waiting

    async def waiting(self) -> Proposal:
        """Return the proposal that waits, once one does."""
        waiting = _waiting(await self.until(_waiting, "a gate"))
        assert waiting is not None
        return waiting

    async def passed(self, proposal: Proposal) -> SessionUpdate:
        """Wait until `proposal`, as it was, waits no longer."""
        return await self.until(lambda it: _waiting(it) != proposal, f"a decision about {proposal.id}")

    async def approve(self, kind: Permission) -> Proposal:
        """Approve what waits."""
        proposal = await self.gate(kind)
        await self.submit(ApproveProposal(proposal.id, shown_sha(proposal)))
        await self.passed(proposal)
        return proposal

    async def reject(self, kind: Permission, reason: str) -> Proposal:
        proposal = await self.gate(kind)
        await self.submit(RejectProposal(proposal.id, reason))
        await self.passed(proposal)
        return proposal

    async def skip(self, kind: Permission) -> Proposal:
        proposal = await self.gate(kind)
        await self.submit(SkipProposal(proposal.id))
        await self.passed(proposal)
        return proposal

    async def edit(self, kind: Permission, text: str) -> Proposal:
        """Put another text in place of what waits and return what waits then."""
        proposal = await self.gate(kind)
        await self.submit(EditProposal(proposal.id, text))
        await self.passed(proposal)
        return await self.gate(kind)

    async def notice(self, intent: Intent) -> str:
        """Submit an intent and return what the user is told about its outcome."""
        outcome = await self.outcome(intent)
        text = outcome.reason if isinstance(outcome, Refused) else outcome.note if isinstance(outcome, Accepted) else ""
        assert text, outcome
        return text

    async def told(self, words: str) -> SessionUpdate:
        """Wait for a notice with these words."""
        return await self.until(lambda it: any(words in each.text for each in it.live.notices), f"a notice: {words}")

    async def over(self) -> SessionUpdate:
        """Wait until the task is over and nothing of it waits; notes may be offered."""
        return await self.until(
            lambda it: (
                it.state.run
                and it.state.run.phase is Phase.OVER
                and isinstance(next_move(replace(it.state, note_offer=None)), Idle)
            ),
            "the task's end",
        )

    async def trouble(self) -> SessionUpdate:
        return await self.until(lambda it: isinstance(next_move(it.state), AwaitRetry), "trouble")


def _waiting(update: SessionUpdate) -> Proposal | None:
    """Return what waits for the user; what the policy is about to decide does not."""
    waiting = update.state.waiting
    return waiting if waiting is not None and ruling(update.state, waiting) is None else None


def handle_of(stage: Stage) -> LocalSession:
    """Return the stage's session as a front end has it; it lives when its `run()` is awaited."""
    return LocalSession(LiveSession(stage.session, stage.recorder, IntentQueue()), stage.updates, EventFeed())


@asynccontextmanager
async def in_front_of(stage: Stage) -> AsyncIterator[Front]:
    """Let the stage's session live; at the end the user leaves, and the journal tells the same as the state."""
    session = handle_of(stage)
    life = asyncio.create_task(session.run())
    front = Front(session)
    try:
        yield front
        await front.submit(Leave())
        async with asyncio.timeout(PATIENCE_SECONDS):
            await life
    except BaseException as error:
        if life.done() and not life.cancelled() and (cause := life.exception()):
            raise AssertionError("the session's life ended in an error") from cause
        raise error from None
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
    assert stage.read_back() == stage.state
