"""How much of its prompts a server reads again over a task of many steps: a real server, answers from a script."""

import asyncio
import json
import os
import tempfile
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from agent_workbench.adapters.demo.script import T1_FINISH, T1_RIGHT
from agent_workbench.adapters.llama_cpp.scripted import ScriptedModel
from agent_workbench.bootstrap import Say
from agent_workbench.calls.sites import TerminalSite, find_site, open_desk
from agent_workbench.calls.working import demo_place
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ModelAnswered, Recorded
from agent_workbench.core.ids import TaskId
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.place import Place
from agent_workbench.core.ports import Model
from agent_workbench.core.settings import Settings
from agent_workbench.core.state import SessionState
from agent_workbench.engine.board import Board
from agent_workbench.engine.headless import run_headless
from bench.figures import Figure

TASK = TaskId("T-1")
OPEN = {"approvals.diff": "auto", "approvals.check": "auto", "approvals.commit": "auto"}


class _ScriptedSite(TerminalSite):
    """The demo's repository, with a longer script."""

    script: tuple[str, ...] = ()

    def model(self, settings: Settings, say: Say) -> Model:
        return ScriptedModel(super().model(settings, say), {TASK: self.script})


def measure(steps: int = 15) -> list[Figure]:
    """Do a task in `steps` steps and sum up what the server said of each prompt."""
    with tempfile.TemporaryDirectory(prefix="bench-prompt-") as folder:
        places = {name: f"{folder}/{name.lower()}" for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
        with patch.dict(os.environ, places):
            answers = asyncio.run(_run(Path(folder) / "shop", steps))
    prompts = sum(each.prompt_tokens for each in answers)
    read = sum(each.prompt_tokens - each.cached_tokens for each in answers)
    again, answered = read_again(answers)
    last = answers[-1]
    return [
        Figure("answers", len(answers), "answers"),
        Figure("tokens of all prompts", prompts, "tokens"),
        Figure("of these the server read", 100 * read / prompts, "%", "10.4 where every step only appends"),
        Figure("read again of the prompt before", again, "tokens", "0"),
        # The random model spells its sentences in other tokens than the tokenizer would, so its own words come anew.
        Figure("read again of its own answers", answered, "tokens", "what was spelled unlike the tokenizer would"),
        Figure("the last prompt", last.prompt_tokens, "tokens"),
        Figure("of it the server read", last.prompt_tokens - last.cached_tokens, "tokens"),
    ]


def read_again(answers: list[AnswerFigures]) -> tuple[int, int]:
    """Return how many tokens of a prompt, and of the answer to it, were not in the cache at the prompt after it."""
    prompts = answered = 0
    for before, after in pairwise(answers):
        missing = before.prompt_tokens - after.cached_tokens
        prompts += max(0, missing)
        answered += max(0, before.answer_tokens + min(0, missing))
    return prompts, answered


async def _run(folder: Path, steps: int) -> list[AnswerFigures]:
    place = Place(folder, os.environ, OPEN, unconfined=True)
    await demo_place(folder, place)
    found = await find_site(place)
    site = _ScriptedSite(found.place, found.repository, found.root)
    site.script = (*_readings(steps - 2), T1_RIGHT.replace("cents + line.quantity", "cents"), T1_FINISH)
    answers: list[AnswerFigures] = []

    def heard(recorded: Recorded, _: SessionState) -> None:
        if isinstance(recorded.event, ModelAnswered):
            answers.append(recorded.event.figures)

    desk, recorder = await open_desk(site, Board(SessionState()), trusted=True, headless=True, on_recorded=heard)
    ending = await run_headless(desk, recorder, (TASK,))
    if ending.exit_code is not ExitCode.DONE:
        raise SystemExit(f"the scripted task in {place.folder} did not end well: {ending.reason}")
    return answers


def _readings(count: int) -> tuple[str, ...]:
    """Return so many steps that look at something and change nothing."""
    calls = (
        ("read_file", {"path": "shop/cart.py"}),
        ("list_files", {"glob": "**/*.py"}),
        ("grep", {"text": "quantity"}),
        ("read_file", {"path": "tests/test_cart.py"}),
        ("search_code", {"query": "price of all lines"}),
        ("note", {"text": "The quantity is not used."}),
    )
    told = []
    for number in range(count):
        tool, arguments = calls[number % len(calls)]
        thought = f"This is look number {number + 1}, before anything is changed."
        told.append(f"Thought: {thought}\nAction: {tool}\n{json.dumps(arguments)}")
    return tuple(told)
