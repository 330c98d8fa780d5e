"""Rounds at the forge at intervals, beside the work of a worker."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING

from agent_workbench.core.errors import error_text

if TYPE_CHECKING:
    from agent_workbench.subjects.forge.round_calls import ForgeRounds

REPORT_AGAIN_SECONDS = 600.0


class ForgeWatch:
    """Rounds at the forge every `poll_seconds`.

    Where one ends well, reports that failed are sent again now and then.
    """

    def __init__(
        self,
        rounds: "ForgeRounds",
        poll_seconds: float,
        note: Callable[[str], None],
        caution: Callable[[str], None],
        report_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._rounds = rounds
        self._poll_seconds = poll_seconds
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
                await asyncio.sleep(self._poll_seconds)
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
