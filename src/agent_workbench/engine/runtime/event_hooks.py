"""Hooks that are told of an event: they run beside the session, each one in the order of its events."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.events import Event, HookAnswered, HookStarted
from agent_workbench.core.hook_answers import as_notice
from agent_workbench.core.hook_document import (
    HookDocument,
    event_document,
    point_of_event,
    proposal_document,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.ports.hooks import Hooks
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings.hooks import HookPoint, HookSettings
from agent_workbench.core.state.proposal_hooks import began
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.publisher import UpdatePublisher

MAX_QUEUED = 100
_ROOM_SECONDS = 1.0
"""Time beyond a hook's own limit in which its process ends."""


class _Call(Struct, frozen=True):
    """An event for one hook."""

    point: HookPoint
    document: HookDocument
    proposal: ProposalId


class EventHooks:
    """Runs the hooks of one session. No event waits for them, and none of their failures is one of the session."""

    def __init__(
        self,
        hooks: Hooks,
        settings: Mapping[str, HookSettings],
        publisher: UpdatePublisher,
        record: Callable[[Event], Awaitable[object]],
    ) -> None:
        self._hooks = hooks
        self._settings = settings
        self._publisher = publisher
        self._record = record
        self._told: Proposal | None = None
        self._queues: dict[str, asyncio.Queue[_Call]] = {}
        self._working: dict[str, asyncio.Task[None]] = {}

    def tell(self, event: Event, state: SessionState) -> None:
        """Tell the hooks of an event that was recorded; `state` is the one after it."""
        point = point_of_event(event) if self._settings else None
        if point is not None:
            for name in self._named(point):
                self._queue(name, _Call(point, event_document(state, point, name, event), ProposalId("")))

    def tell_waiting(self, proposal: Proposal, state: SessionState) -> None:
        """Tell the hooks that a proposal waits for a person: once for each content of it."""
        point = HookPoint.WAITS_FOR_PERSON
        if proposal is self._told:
            return
        self._told = proposal
        for name in self._named(point):
            if not began(state, proposal, name, point):
                self._queue(name, _Call(point, proposal_document(state, point, name, proposal), proposal.id))

    async def finish(self) -> None:
        """Wait for what is queued, for each hook at most as long as one run of it may take."""
        waits = [asyncio.create_task(self._finish(name)) for name in self._working]
        await asyncio.gather(*waits)

    async def stop(self) -> None:
        """Stop what runs; nothing that is queued runs any more."""
        working, self._working = self._working, {}
        self._queues.clear()
        for task in working.values():
            task.cancel()
        if working:
            await asyncio.wait(working.values())

    def _named(self, point: HookPoint) -> list[str]:
        return [name for name, hook in self._settings.items() if point in hook.events]

    def _queue(self, name: str, call: _Call) -> None:
        queue = self._queues.setdefault(name, asyncio.Queue(MAX_QUEUED))
        try:
            queue.put_nowait(call)
        except asyncio.QueueFull:
            self._publisher.notify(f"hook {name} was not told of {call.point}: {MAX_QUEUED} events wait for it")
            return
        if name not in self._working:
            self._working[name] = in_background(self._work(name, queue))

    async def _work(self, name: str, queue: "asyncio.Queue[_Call]") -> None:
        while True:
            call = await queue.get()
            try:
                await self._run(name, call)
            except WorkbenchError as error:  # of the journal, which also stops the session itself
                self._publisher.notify(f"hook {name} at {call.point}: {error_text(error)}")
            finally:
                queue.task_done()

    async def _run(self, name: str, call: _Call) -> None:
        await self._record(HookStarted(name, call.point, call.proposal))
        outcome = await self._hooks.run(name, call.point, call.document.text, call.document.workspace)
        answer = as_notice(outcome)
        if answer.failed:
            self._publisher.notify(f"hook {name} failed at {call.point}: {answer.reason}")
        seconds = round(outcome.seconds, 3)
        await self._record(
            HookAnswered(name, call.point, answer.verdict, call.proposal, answer.reason, seconds, answer.failed)
        )

    async def _finish(self, name: str) -> None:
        done = asyncio.create_task(self._queues[name].join())
        await asyncio.wait({done}, timeout=self._settings[name].timeout_seconds + _ROOM_SECONDS)
        if not done.done():
            done.cancel()
            self._publisher.notify(f"hook {name} was stopped: it had not ended with the session")
