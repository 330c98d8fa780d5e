"""Intents on their way to a session: each waits in a queue for its turn, and each is answered."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from agent_workbench.core.intents import Intent
from agent_workbench.core.outcomes import Outcome, Refused

ENDED = "the session has ended"


class Submission(Struct, frozen=True):
    """An intent and the future outcome of it."""

    intent: Intent
    outcome: asyncio.Future[Outcome]

    def answer(self, outcome: Outcome) -> None:
        """Give the sender the outcome, unless they have one or stopped waiting."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


def submission(intent: Intent) -> Submission:
    """Return an intent whose outcome is not known yet."""
    return Submission(intent, asyncio.get_running_loop().create_future())


def answered(outcome: Outcome) -> Awaitable[Outcome]:
    """Return an outcome that is known already, to be awaited like any other."""
    found: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    found.set_result(outcome)
    return found


class IntentQueue:
    """Intents of a session in the order in which they were submitted.

    `answer_at_once` is asked first for the outcome of each; None: the intent waits.
    """

    def __init__(self, answer_at_once: Callable[[Intent], Outcome | None] = lambda _: None) -> None:
        self.answer_at_once = answer_at_once
        self._waiting: asyncio.Queue[Submission] = asyncio.Queue()
        self._closed = False

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Queue an intent and return its outcome; refuse it once the queue is closed."""
        outcome = Refused(ENDED) if self._closed else self.answer_at_once(intent)
        if outcome is not None:
            return answered(outcome)
        submitted = submission(intent)
        self._waiting.put_nowait(submitted)
        return submitted.outcome

    async def get(self) -> Submission:
        """Wait for the next intent and return it."""
        return await self._waiting.get()

    async def get_during(self, work: asyncio.Task[None]) -> Submission | None:
        """Return the next intent as soon as it comes, None if `work` is done before."""
        listening = asyncio.create_task(self._waiting.get())
        try:
            await asyncio.wait({work, listening}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if listening.done():
                listening.result().answer(Refused(ENDED))
            raise
        finally:
            # A listener left behind would take an intent that `close` must answer.
            if not listening.done():
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        return None if listening.cancelled() else listening.result()

    def close(self) -> None:
        """Refuse the intents that wait, and all that come later."""
        self._closed = True
        while not self._waiting.empty():
            self._waiting.get_nowait().answer(Refused(ENDED))
