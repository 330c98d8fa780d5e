"""A task far larger than its context, on a real server: it ends well, and no prompt is longer than the context."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.core import events as e
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.intents import ApproveProposal, DropChunk, EditScratchpad, Intent, PinChunk, SayToModel
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Limits, Permission, Settings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.prompt.messages import build_parts, prompt_sha, to_messages
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change
from tests.engine.test_executor import run
from tests.fakes.ports import GivenChunks
from tests.llama_fixtures import SMALL_CONTEXT_TOKENS, LlamaServer

TOOLS = ("read_file", "note", "write_diff", "finish")
READS, LINES = 40, 10
SETTINGS = Settings(tools_allowed=TOOLS, limits=Limits(max_tool_calls_per_task=READS + 10))
SUMMARIES = [f"Summary: these files hold no answer, look further; this is summary {number}." for number in range(99)]


def reading(number: int) -> str:
    return call("read_file", json.dumps({"path": f"part{number}.txt"}), f"the answer may be in part {number}")


def add_parts(stage: Stage, length: int) -> None:
    """Add files of `length` lines."""
    for number in range(READS):
        lines = [f"part {number}, line {line}: nothing to be seen here" for line in range(1, length + 1)]
        stage.user.write(f"part{number}.txt", "\n".join(lines) + "\n")
    stage.user.commit("Add the parts")


def answers_of(stage: Stage) -> list[tuple[Purpose, AnswerFigures]]:
    """Return for each answer what it was for and what the server measured."""
    found: list[tuple[Purpose, AnswerFigures]] = []
    purpose = Purpose.EXECUTOR
    for event in stage.events:
        if isinstance(event, e.PromptBuilt):
            purpose = event.purpose
        elif isinstance(event, e.ModelAnswered):
            found.append((purpose, event.figures))
    return found


@pytest.mark.slow
async def test_a_task_of_five_times_the_context_ends_well(tmp_path: Path, small_llama_server: LlamaServer) -> None:
    script = [*(reading(number) for number in range(READS)), change("wrong", "right"), FINISH]
    model = ScriptedModel(small_llama_server.model(), {"T-1": script, "T-1:summary": SUMMARIES})
    async with a_stage(tmp_path, settings=SETTINGS, approvals=OPEN, headless=True, model=model) as stage:
        add_parts(stage, LINES)
        assert (await run(stage, "T-1")).reason == "T-1 done: committed"
        assert stage.git("show", "agent/T-1:answer.txt") == "right"
        proposals = [event.proposal for event in stage.events if isinstance(event, e.ActionProposed)]
        read = [each.text for each in proposals if each.tool == "read_file"]
        assert len(read) == len(set(read)) == READS, "no answer was given twice or passed over"

        answers = answers_of(stage)
        sizes = [figures.prompt_tokens + figures.answer_tokens for _, figures in answers]
        assert max(sizes) <= SMALL_CONTEXT_TOKENS
        assert await tokens_of_all_steps(stage, small_llama_server) > 5 * SMALL_CONTEXT_TOKENS, "or it was no such task"

        compacted = [event for event in stage.events if isinstance(event, e.ContextCompacted)]
        assert len(compacted) > 4
        assert {event.by for event in compacted} == {e.Author.MODEL}
        assert [event.summary for event in compacted] == [
            text.removeprefix("Summary: ") for text in SUMMARIES[: len(compacted)]
        ]
        prove_prompts(stage)
        prove_reads(stage)
        # What a step brought is read whole, though it may be a compaction that lets it be read.
        stories = [prompt for purpose, prompt in prompts_of(stage) if purpose is Purpose.EXECUTOR][1 : READS + 1]
        assert all(f"part {number}, line {LINES}:" in text for number, text in enumerate(stories))


FOUND = (Chunk("part1.txt", 1, 3, "one\ntwo\nthree", 1.0), Chunk("part2.txt", 1, 1, "one", 0.5))
STEPS = 16


def interjections() -> list[Intent]:
    """Return what a user says, pins, drops and notes, one for each step."""
    texts = [f"note {number}\n" for number in range(STEPS)]
    notes = [EditScratchpad(T1, before, text) for before, text in pairwise(["", *texts])]
    others: list[Intent] = [
        SayToModel("mind the second line\nof part 1"),
        PinChunk("part1.txt:1-3"),
        DropChunk("part2.txt:1-1"),
        PinChunk("part1.txt:1-3", pinned=False),
        PinChunk("part2.txt:1-1"),
        DropChunk("part1.txt:1-3"),
        SayToModel("that is all"),
    ]
    mixed = [intent for pair in zip(notes, others, strict=False) for intent in pair]
    return [*mixed, *notes[len(others) :]][:STEPS]


@pytest.mark.slow
async def test_nothing_is_read_twice_whatever_the_user_does_in_between(
    tmp_path: Path, llama_server: LlamaServer
) -> None:
    script = [*(reading(number) for number in range(STEPS)), change("wrong", "right"), FINISH]
    model = ScriptedModel(llama_server.model(), {"T-1": script})
    retriever = GivenChunks(FOUND)
    approvals = replace(OPEN, read=Approval.ASK)
    async with a_stage(tmp_path, settings=SETTINGS, approvals=approvals, model=model, retriever=retriever) as stage:
        add_parts(stage, 4)
        async with in_front_of(stage) as front:
            await front.start()
            for intent in interjections():
                waits = await front.gate(Permission.READ)
                before = stage.state.seq
                await front.submit(intent)
                await front.until(lambda it, before=before: it.state.seq > before)  # type: ignore[misc]
                await front.submit(ApproveProposal(waits.id, shown_sha(waits)))
                await front.passed(waits)
            await front.approve(Permission.READ)
            await front.gate(Permission.MERGE)
        told = "\n".join(text for _, text in prompts_of(stage)[-1:])
        for kept in ("> mind the second line\n> of part 1", "The user pinned part1.txt:1-3", "note 5", "> that is all"):
            assert kept in told
        assert "part2.txt:1-1 does not matter" in told
        prove_prompts(stage)
        prove_reads(stage)
        run_ = stage.state.run
        assert run_ is not None
        assert run_.reads.again_tokens <= run_.reads.prompt_tokens / 100, run_.reads
        assert not [event for event in stage.events if isinstance(event, e.ContextFilled)]


async def tokens_of_all_steps(stage: Stage, server: LlamaServer) -> int:
    """Return how long the prompt would be in the end if nothing had been summed up."""
    model = server.model()
    finished = [event for event in stage.events if isinstance(event, e.ActionFinished)]
    counts = await model.count_tokens([event.observation for event in finished])
    await model.close()
    said = [figures.answer_tokens for purpose, figures in answers_of(stage) if purpose is Purpose.EXECUTOR]
    return sum(counts) + sum(said)


def with_states(stage: Stage) -> Iterator[tuple[Recorded, SessionState]]:
    """Yield what the journal holds, each event with the state before it."""
    state = SessionState()
    for recorded in stage.journal():
        yield recorded, state
        state = fold(state, recorded)


def prompts_of(stage: Stage) -> list[tuple[Purpose, str]]:
    """Return for each prompt what it was for and all that it said."""
    found: list[tuple[Purpose, str]] = []
    for recorded, before in with_states(stage):
        if isinstance(recorded.event, e.PromptBuilt):
            parts = build_parts(before, recorded.event.purpose)
            found.append((recorded.event.purpose, "\n".join(part.text for part in parts)))
    return found


def prove_prompts(stage: Stage) -> None:
    """Every prompt is what its journal says it is, and those between two compactions only grow."""
    before: tuple[str, ...] = ()
    for recorded, state in with_states(stage):
        event = recorded.event
        if isinstance(event, e.ContextCompacted):
            before = ()
        if not isinstance(event, e.PromptBuilt):
            continue
        messages = to_messages(build_parts(state, event.purpose))
        assert prompt_sha(messages) == event.sha
        texts = tuple(message.text for message in messages)
        assert texts[: len(before)] == before
        before = texts


def prove_reads(stage: Stage) -> None:
    """What a prompt has in common with the one before it was in the server's cache."""
    prompts = compactions = 0
    before: AnswerFigures | None = None
    for event in stage.events:
        match event:
            case e.ContextCompacted():
                before, compactions = None, compactions + 1
            case e.ModelAnswered(figures=figures):
                if before is not None:
                    assert figures.cached_tokens >= before.prompt_tokens - 1
                    prompts += 1
                before = figures
            case _:
                pass
    assert prompts >= 15
