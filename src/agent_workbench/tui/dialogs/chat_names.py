"""Names that a message of a chat may begin with, behind `/`: consultants, and skills once the session lists them."""

from collections.abc import Awaitable, Callable, Iterator

from textual.widget import Widget

from agent_workbench.core.consult.requests import CONSULTANTS, OFFERED
from agent_workbench.core.intents import Intent, ListSkills
from agent_workbench.core.intents.outcomes import Outcome, SkillsListed


class ChatNames:
    """Names with a description of each. `ask` submits a question to the session."""

    def __init__(self, ask: Callable[[Intent], Awaitable[Outcome]]) -> None:
        self._ask = ask
        self._skills: tuple[tuple[str, str], ...] = ()
        self._listed = False

    def list_once(self, line: Widget, show: Callable[[], None]) -> None:
        """Ask for the skills, unless that was done, and `show` them as long as the `line` is there."""
        if not self._listed:
            self._listed = True
            line.run_worker(self._list(show), group="names")

    async def _list(self, show: Callable[[], None]) -> None:
        outcome = await self._ask(ListSkills())
        self._listed = isinstance(outcome, SkillsListed)  # a session that is not open yet refuses
        if isinstance(outcome, SkillsListed):
            self._skills = tuple((each.name, each.description) for each in outcome.skills)
            show()

    def beginning_with(self, typed: str) -> Iterator[tuple[str, str]]:
        """Yield the names that begin with what is typed, each with its description."""
        consultants = ((name, CONSULTANTS[name].summary) for name in OFFERED)
        yield from (each for each in (*consultants, *self._skills) if each[0].startswith(typed))
