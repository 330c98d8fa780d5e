"""Names that words may call behind `/`: prompts of the user's own, and in a chat consultants and skills."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from textual.widget import Widget

from agent_workbench.core.consult.requests import CONSULTANTS, OFFERED
from agent_workbench.core.intents import Intent, ListPrompts, ListSkills
from agent_workbench.core.intents.outcomes import Outcome, PromptsListed, Refused, SkillsListed
from agent_workbench.tui.palette import LineCommand, matching_commands


class CalledNames:
    """Names with a description of each. `ask` submits a question to the session.

    `remark` says why some prompts cannot be called.
    """

    def __init__(self, ask: Callable[[Intent], Awaitable[Outcome]]) -> None:
        self._ask = ask
        self._prompts: dict[str, str] = {}
        self._skills: dict[str, str] = {}
        self._listed = False
        self.remark = ""

    def list_once(self, line: Widget, show: Callable[[], None], *, in_chat: bool) -> None:
        """Ask for the names, unless that was done, and `show` them as long as the `line` is there."""
        if not self._listed:
            self._listed = True
            line.run_worker(self._list(show, in_chat), group="names")

    async def _list(self, show: Callable[[], None], in_chat: bool) -> None:
        prompts = await self._ask(ListPrompts())
        if isinstance(prompts, PromptsListed):
            self._prompts = {each.name: each.description for each in prompts.prompts}
            self.remark = prompts.remark
        skills = await self._ask(ListSkills()) if in_chat else None
        if isinstance(skills, SkillsListed):
            self._skills = {each.name: each.description for each in skills.skills}
        if isinstance(prompts, Refused) or isinstance(skills, Refused):  # a session that is not open yet
            self._listed = False
        else:
            show()

    def fitting(self, typed: str, commands: Sequence[LineCommand], *, in_chat: bool) -> Iterator[tuple[str, str]]:
        """Yield the names that begin with what is typed, then the commands that fit, each with its description.

        A command comes before a consultant, that before a prompt, and a prompt before a skill of its name.
        """
        consultants = {name: CONSULTANTS[name].summary for name in OFFERED} if in_chat else {}
        called = {**consultants, **(self._skills if in_chat else {}), **self._prompts}
        taken = {each.name for each in commands}
        yield from (each for each in called.items() if each[0].startswith(typed) and each[0] not in taken)
        yield from ((each.name, each.help) for each in matching_commands(commands, typed))
