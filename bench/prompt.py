"""How much of its prompts a server reads again over a task of many steps: a real server on a real repository.

Once with answers from a script, while the user pins and drops code, edits the scratchpad and says a word; once with a
summary of the older steps in between; once with what the tiny random model says by itself.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from msgspec import Struct

from agent_workbench.adapters.demo import T1_FINISH, T1_RIGHT
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.api.sessions.session_opening import open_session
from agent_workbench.api.set_up import write_demo
from agent_workbench.bootstrap.repo_context import RepoContext, Say, find_repo
from agent_workbench.core.events import (
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    Recorded,
    ScratchpadChanged,
    UserSaid,
)
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    CompactContext,
    DropChunk,
    EditScratchpad,
    Intent,
    Leave,
    PinChunk,
    SayToModel,
    StartTask,
)
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.model import Model
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.engine.runtime.intent_queue import IntentQueue
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.session.live_session import LiveSession
from bench.figures import Figure

TASK = TaskId("T-1")
OPENED = {f"approvals.{kind}": "auto" for kind in ("diff", "check", "command", "commit", "summary")}
OPEN = {**OPENED, "ui.review_context": "false"}
SUMMARY = "Summary: The cart's files were read; total() in shop/cart.py adds up the prices and leaves out the quantity."
AIM = "≤ 1 %"
WISHED: set[type] = {ChunkPinned, ChunkDropped, ScratchpadChanged, UserSaid}


class _BenchRepo(RepoContext):
    """The demo's repository, with a script of its own, or with none."""

    script: tuple[str, ...] = ()

    def model(self, settings: Settings, say: Say) -> Model:
        model = super().model(settings, say)
        return ScriptedModel(model, {TASK: self.script, f"{TASK}:summary": (SUMMARY,)}) if self.script else model


class _Wish(Struct, frozen=True):
    """What the user wants once so many steps were answered."""

    after: int
    intent: Intent


class Told(Struct, frozen=True):
    """What an answer cost, and for what it was."""

    purpose: Purpose
    figures: AnswerFigures


def measure(steps: int = 16) -> list[Figure]:
    """Do a task in `steps` steps in each way and sum up what the server said of each prompt."""
    busy = _done(steps, scripted=True)
    summed = _done(steps, scripted=True, compacts=True)
    alone = _done(steps, scripted=False)
    return [
        *_figures("scripted", busy, AIM),
        *_compaction("summed up", summed),
        # The random model spells its sentences in other tokens than the tokenizer would, so its own words come anew.
        *_figures("random", alone, "its words, spelled unlike the tokenizer would"),
    ]


def _figures(name: str, run: TaskRun, aim: str) -> list[Figure]:
    told = told_of(run.history)
    last, prompts = told[-1].figures, run.reads.prompt_tokens
    return [
        Figure(f"{name}: prompts", len(told), "prompts"),
        Figure(f"{name}: tokens of all prompts", prompts, "tokens"),
        Figure(f"{name}: new in them", run.reads.new_tokens, "tokens"),
        Figure(f"{name}: read again", run.reads.again_tokens, "tokens"),
        Figure(f"{name}: read again, of all", 100 * run.reads.again_share, "%", aim),
        # By the letter of it: a server never reads the last token that it says, but both prompts have it in common.
        Figure(f"{name}: the same, the last token of answers too", 100 * literally(told) / prompts, "%", aim),
        Figure(f"{name}: the last prompt", last.prompt_tokens, "tokens"),
        Figure(f"{name}: of it the server read", last.prompt_tokens - last.cached_tokens, "tokens"),
    ]


def _compaction(name: str, run: TaskRun) -> list[Figure]:
    told = told_of(run.history)
    asking = next(place for place, each in enumerate(told) if each.purpose is Purpose.SUMMARY)
    before, asked, after = (told[asking + step].figures for step in (-1, 0, 1))
    return [
        Figure(f"{name}: prompts", len(told), "prompts"),
        Figure(f"{name}: read again but for the summary, of all", 100 * run.reads.again_share, "%", AIM),
        Figure(f"{name}: the prompt before", before.prompt_tokens, "tokens"),
        Figure(f"{name}: read to ask for the summary", asked.prompt_tokens - asked.cached_tokens, "tokens"),
        Figure(f"{name}: the prompt after", after.prompt_tokens, "tokens"),
        Figure(f"{name}: of it the server read", after.prompt_tokens - after.cached_tokens, "tokens"),
    ]


def told_of(history: Sequence[Recorded]) -> list[Told]:
    """Return what each answer cost of which the server told something."""
    told: list[Told] = []
    purpose = Purpose.EXECUTOR
    for recorded in history:
        event = recorded.event
        if isinstance(event, PromptBuilt):
            purpose = event.purpose
        if isinstance(event, ModelAnswered | ModelInterrupted) and event.figures.prompt_tokens:
            told.append(Told(purpose, event.figures))
    return told


def literally(told: Sequence[Told]) -> int:
    """Return the tokens that each prompt has in common with the prompt and answer before, less those in the cache."""
    again = 0
    for before, after in pairwise(told):
        common = min(before.figures.prompt_tokens + before.figures.answer_tokens, after.figures.prompt_tokens)
        again += max(0, common - after.figures.cached_tokens)
    return again


def _done(steps: int, *, scripted: bool, compacts: bool = False) -> TaskRun:
    """Return a task's run after so many steps; raise `SystemExit` where it did not go as it was meant to."""
    with tempfile.TemporaryDirectory(prefix="bench-prompt-") as folder:
        places = {name: f"{folder}/{name.lower()}" for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
        with patch.dict(os.environ, places):
            state = asyncio.run(_run(Path(folder) / "shop", steps, scripted=scripted, compacts=compacts))
    run = state.run_of(TASK)
    if run is None or (scripted and run.status is not TaskStatus.DONE):
        raise SystemExit(f"the task did not end well: {state.trouble or (run and run.reason)}")
    happened = {type(each.event) for each in run.history}
    meant = {ContextCompacted} if compacts else WISHED if scripted else set[type]()
    if missing := meant - happened:
        raise SystemExit(f"in the task there was no {', '.join(each.__name__ for each in missing)}")
    return run


async def _run(folder: Path, steps: int, *, scripted: bool, compacts: bool) -> SessionState:
    bounds = {} if scripted else _bounds(steps)
    invocation = Invocation(folder, os.environ, {**OPEN, **bounds}, unconfined=True)
    await write_demo(folder, invocation)
    # Not as the demo: its script would come before ours.
    found = await find_repo(invocation)
    repo = _BenchRepo(found.invocation, found.repository, found.root)
    if scripted:
        repo.script = (*_readings(steps - 2), T1_RIGHT.replace("cents + line.quantity", "cents"), T1_FINISH)
    updates, events = UpdateFeed(), EventFeed()
    publisher = UpdatePublisher(updates.publish)
    # A random model may want what takes a person to approve, such as a file removed: unattended that is refused.
    context, recorder = await open_session(repo, SessionQuery(), publisher, events, trusted=True, headless=not scripted)
    session = LocalSession(LiveSession(context, recorder, IntentQueue()), updates, events)
    living = asyncio.create_task(session.run())
    try:
        return await _watched(session, steps, busy=scripted and not compacts, compacts=compacts)
    finally:
        session.submit(Leave())
        await living


def _bounds(steps: int) -> dict[str, str]:
    """Return the settings with which a model that gets nothing right goes on for so many steps."""
    limits = ("max_tool_calls_per_task", "max_reflexion_retries", "consecutive_failure_threshold")
    return {
        **{f"limits.{name}": str(steps) for name in limits},
        "model.answer_tokens": "400",
        "approvals.knowledge": "deny",  # a note would wait for a person
    }


async def _watched(session: SessionHandle, steps: int, *, busy: bool, compacts: bool) -> SessionState:
    """Start the task, want what the user wants in between, and return the state at the end."""
    session.submit(StartTask(TASK))
    wishes: list[_Wish] | None = None
    async with aclosing(session.live()) as updates:
        async for update in updates:
            run = update.state.run
            if update.state.trouble is not None or (run is not None and run.status is not None):
                return update.state
            if run is None or not run.answered_step:
                continue
            if wishes is None:
                wishes = _wishes(run, steps, busy=busy, compacts=compacts)
            while wishes and wishes[0].after <= run.answered_step:
                session.submit(wishes.pop(0).intent)
    raise SystemExit("the session ended before its task")


def _wishes(run: TaskRun, steps: int, *, busy: bool, compacts: bool) -> list[_Wish]:
    if compacts:
        return [_Wish(max(1, steps // 2), CompactContext())]
    found = next(each.event for each in run.history if isinstance(each.event, CodeRetrieved))
    wanted: tuple[Intent, ...] = (
        PinChunk(found.chunks[0].place),
        DropChunk(found.chunks[-1].place),
        EditScratchpad(TASK, "", "Prices are whole cents.\n"),
        SayToModel("Mind the tests in tests/test_cart.py."),
        PinChunk(found.chunks[0].place, pinned=False),
    )
    apart = max(1, steps // (len(wanted) + 1))
    return [_Wish(apart * number, intent) for number, intent in enumerate(wanted, 1)] if busy else []


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
