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

    def close(self) -> None:
        """Refuse the intents that wait, and all that come later."""
        self._closed = True
        while not self._waiting.empty():
            self._waiting.get_nowait().answer(Refused(ENDED))
