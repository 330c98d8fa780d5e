"""Hooks that answer what a test tells them, and keep what they were told."""

import asyncio
import json
from collections.abc import Iterable, Mapping

from agent_workbench.core.hook_answers import HookOutcome
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.tools.strict_json import JsonValue


class ScriptedHooks:
    """The port `Hooks`: each hook gives its outcomes in turn, the last one again and again. `slow` ones never end."""

    def __init__(self, answers: Mapping[str, Iterable[HookOutcome]] | None = None, slow: Iterable[str] = ()) -> None:
        self._answers = {name: list(outcomes) for name, outcomes in (answers or {}).items()}
        self.slow = set(slow)
        self.began = asyncio.Event()
        self.stopped: list[str] = []
        self.told: list[tuple[str, HookPoint, dict[str, JsonValue]]] = []

    async def run(self, name: str, point: HookPoint, document: str, workspace: str) -> HookOutcome:
        read = json.loads(document)
        assert isinstance(read, dict)
        assert read.get("workspace", "") == workspace
        self.told.append((name, point, read))
        self.began.set()
        if name in self.slow:
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped.append(name)
        answers = self._answers.get(name, [HookOutcome()])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def says(text: str) -> HookOutcome:
    """Return the outcome of a hook that printed this."""
    return HookOutcome(text, seconds=0.1)
