"""Queue of the intents of a session: each waits for its turn, and each is answered."""

import asyncio
from collections.abc import Awaitable

from agent_workbench.core.intents import Intent
from agent_workbench.core.intents.outcomes import Outcome, Refused
from agent_workbench.engine.runtime.submission import Submission, answered, submission

ENDED = "the session has ended"


class IntentQueue:
    """Intents in the order in which they were submitted."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Submission] = asyncio.Queue()
        self._closed = False

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Queue an intent and return its outcome; refuse it once the queue is closed."""
        if self._closed:
            return answered(Refused(ENDED))
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
