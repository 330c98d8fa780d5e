"""Submission of an intent: the intent in a queue with the outcome that its sender waits for."""

import asyncio
from collections.abc import Awaitable

from msgspec import Struct

from agent_workbench.core.intents import Intent
from agent_workbench.core.intents.outcomes import Outcome


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


def forward(outcome: Awaitable[Outcome], submitted: Submission) -> None:
    """Answer a submission with an outcome that comes later."""

    def answer(done: asyncio.Future[Outcome]) -> None:
        if not done.cancelled():
            submitted.answer(done.result())

    asyncio.ensure_future(outcome).add_done_callback(answer)
