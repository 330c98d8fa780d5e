"""A session's prompts and answers, made again from its journal alone, are those that were; what is not is named."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    ActionRejected,
    CodeRetrieved,
    ContextCompacted,
    Event,
    ModelAnswered,
    PromptBuilt,
    Recorded,
    ReflexionNoted,
    TaskStarted,
)
from agent_workbench.core.history.replay_marks import PromptDifference
from agent_workbench.core.intents import ApproveProposal, CompactContext, EditScratchpad
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.engine.rerun import messages_of, prompts_of, rerun
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, reflexion, reopened
from tests.fakes.ports import Cut, GivenChunks, Hang, Saying

SAYINGS: tuple[Saying, ...] = (
    call("read_file", '{"path": "answer.txt"}'),
    "no step at all",
    call("note", '{"text": "mind the spelling"}'),
    change("wrong", "rigth"),
    reflexion("I misspelt it"),
    call("read_file", '{"path": "../outside"}'),
    Cut("Thought: on and on and"),
    change("rigth", "right"),
    FINISH,
)


async def worked_through(folder: Path) -> tuple[Stage, tuple[Recorded, ...]]:
    """Work a task through with every kind of answer; return its journal."""
    chunks = GivenChunks((Chunk("answer.txt", 1, 1, "wrong", 1.0),))
    async with a_stage(folder, SAYINGS, approvals=OPEN, retriever=chunks) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.state.run and it.state.run.status)
        return stage, stage.journal()


def differences(events: Iterable[Recorded]) -> list[PromptDifference]:
    return [step.difference for step in rerun(events) if step.difference is not None]


def first_change(events: tuple[Recorded, ...], kind: type[Event], **fields: object) -> tuple[Recorded, ...]:
    """Return the journal with fields of the first event of a kind changed."""
    found = next(place for place, each in enumerate(events) if isinstance(each.event, kind))
    changed = replace(events[found], event=replace(events[found].event, **fields))
    return (*events[:found], changed, *events[found + 1 :])


async def test_every_prompt_and_answer_is_the_same_again(tmp_path: Path) -> None:
    stage, journal = await worked_through(tmp_path)
    steps = list(rerun(journal))
    assert len(steps) == len(SAYINGS) == len(stage.model.requests)
    assert [step.difference for step in steps] == [None] * len(SAYINGS)
    assert [messages_of(asked) for asked in prompts_of(journal)] == [each.messages for each in stage.model.requests]
    assert [step.built.seed for step in steps] == [request.seed for request in stage.model.requests]


async def test_a_session_that_was_left_and_taken_up_is_the_same_too(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [SAYINGS[0], Hang("Thought: I")], approvals=OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text == "Thought: I")
            await front.submit(EditScratchpad(T1, "", "mind the spelling\n"))
            await front.until(lambda it: it.state.scratchpad(T1))
        async with reopened(stage, [change("wrong", "right"), FINISH]) as again, in_front_of(again) as front:
            await front.until(lambda it: it.state.run and it.state.run.status)
            journal = again.journal()
    assert len(list(rerun(journal))) == 4
    assert differences(journal) == []


async def summed_up(folder: Path) -> tuple[Recorded, ...]:
    """Work a task through with a summary before its last step; return its journal."""
    summary = "Summary: answer.txt was misspelt, and is mended now."
    sayings = (call("read_file", '{"path": "answer.txt"}'), change("wrong", "right"), summary, FINISH)
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    async with a_stage(folder, sayings, approvals=approvals) as stage, in_front_of(stage) as front:
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        await front.submit(CompactContext())
        await front.submit(ApproveProposal(waiting.id, shown_sha(waiting)))
        await front.until(lambda it: it.state.run and it.state.run.status)
        return stage.journal()


async def test_what_was_summed_up_is_the_same_too(tmp_path: Path) -> None:
    journal = await summed_up(tmp_path)
    steps = list(rerun(journal))
    assert [step.built.purpose for step in steps] == [
        *(Purpose.EXECUTOR, Purpose.EXECUTOR, Purpose.SUMMARY, Purpose.EXECUTOR),
    ]
    assert [step.difference for step in steps] == [None] * 4


async def test_a_summary_that_was_changed_is_named(tmp_path: Path) -> None:
    journal = await summed_up(tmp_path)
    (found,) = [
        step for step in rerun(first_change(journal, ContextCompacted, summary="all is well")) if step.difference
    ]
    assert found.number == 4
    assert found.difference is not None
    assert found.difference.part == "summary"


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize(
    ("kind", "fields", "number", "part"),
    [
        (TaskStarted, {"skills": ()}, 0, ""),
        (CodeRetrieved, {"chunks": (Chunk("answer.txt", 1, 1, "wrogn", 1.0),)}, 1, "code"),
        (ActionFinished, {"observation": "all is well"}, 1, "observation"),
        (ActionRejected, {"reason": "no reason"}, 2, "answer"),
        (ReflexionNoted, {"text": "I was right"}, 5, "answer"),
        (PromptBuilt, {"sha": "0" * 64}, 1, ""),
    ],
)
async def test_what_was_changed_is_named(
    tmp_path: Path, kind: type[Event], fields: dict[str, object], number: int, part: str
) -> None:
    _, journal = await worked_through(tmp_path)
    found = [step for step in rerun(first_change(journal, kind, **fields)) if step.difference is not None]
    if not number:
        assert found == [], "what is not part of the prompt changes nothing"
        return
    assert found[0].number == number
    assert found[0].difference is not None
    assert found[0].difference.part.split(" ")[0] == part


async def test_an_answer_that_says_something_else_is_named(tmp_path: Path) -> None:
    _, journal = await worked_through(tmp_path)
    other = first_change(journal, ModelAnswered, text=call("read_file", '{"path": "README.md"}'))
    found = next(step for step in rerun(other) if step.difference is not None)
    assert found.number == 1
    assert found.difference is not None
    assert found.difference.what == "the text of read_file is another one"
    assert '-{"path": "answer.txt"}' in found.difference.diff
    assert '+{"path": "README.md"}' in found.difference.diff


async def test_a_prompt_where_the_engine_would_not_ask_is_named(tmp_path: Path) -> None:
    _, journal = await worked_through(tmp_path)
    waiting = next(place for place, each in enumerate(journal) if isinstance(each.event, ActionProposed))
    asked = next(each for each in journal if isinstance(each.event, PromptBuilt))
    (found,) = differences((*journal[: waiting + 1], asked))
    assert found.what.startswith("the engine would not ask the executor here")
