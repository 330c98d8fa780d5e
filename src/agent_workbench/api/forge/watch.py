"""Looks at the forge beside the work of a worker: at intervals, and when a webhook calls."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_workbench.core.errors import ConfigError, error_text
from agent_workbench.core.forge.deliveries import MIN_SECRET_CHARS, Deliveries
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:
    from agent_workbench.api.forge.rounds import ForgeRounds

LEAST_SECONDS = 5.0
PAGE = "how-to/forge.md"
"""Time between two looks, however often the webhook is called."""


REPORT_AGAIN_SECONDS = 600.0


class ForgeWatch:
    """Rounds at the forge every `poll_seconds`, and soon after `called` is set.

    Where one ends well, reports that failed are sent again now and then.
    """

    def __init__(
        self,
        rounds: "ForgeRounds",
        poll_seconds: float,
        called: asyncio.Event,
        note: Callable[[str], None],
        caution: Callable[[str], None],
        report_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._rounds = rounds
        self._poll_seconds = poll_seconds
        self._called = called
        self._note = note
        self._caution = caution
        self._report_again = report_again

    async def run(self) -> None:
        """Look until this is cancelled; what stops a round is told once, until another one ends well."""
        told = ""
        noted: tuple[str, ...] = ()
        due = 0.0
        try:
            while True:
                self._called.clear()
                outcome = await self._rounds.round()
                for line in outcome.done:
                    if line not in noted:  # an issue that cannot be read says so each time
                        self._note(line)
                noted = outcome.done
                problem = error_text(outcome.problem) if outcome.problem is not None else ""
                if problem and problem != told:
                    self._caution(problem)
                told = problem
                now = asyncio.get_running_loop().time()
                if not problem and now >= due:
                    due = now + REPORT_AGAIN_SECONDS
                    await self._report_again()
                await asyncio.sleep(LEAST_SECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, self._poll_seconds - LEAST_SECONDS)):
                        await self._called.wait()
        finally:
            await self._rounds.close()


async def beside(watch: ForgeWatch | None, work: Coroutine[None, None, None]) -> None:
    """Work while the watch goes on; a defect of either ends both."""
    working = asyncio.ensure_future(work)
    both = [working] if watch is None else [working, asyncio.ensure_future(watch.run())]
    try:
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def webhook_deliveries(invocation: Invocation) -> Deliveries:
    """Return the check of a webhook's deliveries; raise `ConfigError` without a forge or a secret."""
    from agent_workbench.api.trusted_repo import trusted_repo

    repo, settings = await trusted_repo(invocation)
    if not settings.forge.active:
        raise ConfigError("a webhook needs a forge", advice="set forge.url and forge.repo, and trust them", page=PAGE)
    name = settings.forge.webhook_secret_env
    secret = repo.invocation.environ.get(name, "").strip() if name else ""
    if len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(
            f"the webhook has no secret of {MIN_SECRET_CHARS} characters or more",
            advice="put it into an environment variable, name that in forge.webhook_secret_env, and tell the forge",
            page=PAGE,
        )
    return Deliveries(secret)
