"""The first prompt of a task waits until the user sends it; what is dropped, pinned and added before is its content."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode, ModelUnavailable
from agent_workbench.core.events import ChunkDropped, CodeRetrieved, PauseChanged, PromptBuilt
from agent_workbench.core.events.codec import decode_event, encode_event
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import AbortTask, DropChunk, FindCode, PauseTask, PinChunk, PreviewPrompt, StartTask
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.model import Purpose
from agent_workbench.core.outcomes import Accepted, PromptPreviewed, Refused
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Approvals, Permission, Settings
from agent_workbench.engine.answer.grammar_choice import shown_chunks
from agent_workbench.engine.flow import AwaitGo, next_move
from agent_workbench.engine.prompt.messages import build_parts, prompt_sha, to_messages
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.code import CodeState, view_code
from agent_workbench.views.gate.gate_bar import GateAct, view_gate
from agent_workbench.views.receipt import head_lines, view_next_prompt
from agent_workbench.views.sessions import view_notification, view_tab
from tests.engine.front import Front, in_front_of
from tests.engine.stage import ANSWER, FINISH, OPEN, T1, Stage, a_stage, change, reopened, task
from tests.fakes.ports import GivenChunks

TASKS = (task(), task("T-2", accept=("true",)))
CHECKS_OPEN = Approvals(check=Approval.AUTO)
RIGHT = change("wrong", "right")
FOUND = Chunk(ANSWER, 1, 1, "wrong", 0.9)
OTHER = Chunk("README.md", 1, 1, "# Hello", 0.5)


@asynccontextmanager
async def reviewing(
    folder: Path, *sayings: str, approvals: Approvals = CHECKS_OPEN, past_speed: float = 0.0
) -> AsyncIterator[tuple[Stage, Front]]:
    """A task whose first prompt waits to be sent."""
    retriever = GivenChunks((FOUND, OTHER))
    async with a_stage(
        folder, sayings, approvals=approvals, retriever=retriever, tasks=TASKS, past_speed=past_speed
    ) as stage:
        assert stage.state.config is not None
        await stage.session.record(replace(stage.state.config, review_context=True))
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(waits, "the first prompt")
            yield stage, front


def waits(update: SessionUpdate) -> bool:
    return update.state.run is not None and update.state.run.awaits_send


async def preview(front: Front) -> PromptPreviewed:
    outcome = await front.outcome(PreviewPrompt())
    assert isinstance(outcome, PromptPreviewed), outcome
    return outcome


def sent(stage: Stage) -> str:
    return "\n".join(message.text for message in stage.model.requests[0].messages)


async def test_nothing_is_sent_before_the_user_sends_it_and_then_exactly_what_was_shown(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        assert front.now is not None
        gate = view_gate(front.now)
        assert (gate.word, gate.acts) == ("context", (GateAct.SEND, GateAct.ABORT))
        assert view_tab(front.now).waiting_for == "context"
        assert view_notification(front.now) is not None
        shown = await preview(front)
        assert (stage.model.requests, shown.built.tokens > 0) == ([], True)
        assert isinstance(await front.outcome(PauseTask(paused=False)), Accepted)
        await front.gate(Permission.DIFF)
        (built, *_) = [event for event in stage.events if isinstance(event, PromptBuilt)]
        assert (built.sha, built.parts, built.tokens) == (shown.built.sha, shown.built.parts, shown.built.tokens)
        (resumed,) = [event for event in stage.events if isinstance(event, PauseChanged)]
        assert not resumed.paused


async def test_dropped_code_takes_no_number_from_the_pieces_after_it(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        await front.outcome(DropChunk(FOUND.place))
        await front.outcome(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        assert f"Piece 1: {OTHER.path}, the whole file\n" in sent(stage)
        assert FOUND.place not in sent(stage)


async def test_dropped_code_is_not_sent_and_its_lines_are_not_offered(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        before = await preview(front)
        await front.outcome(DropChunk(OTHER.place))
        after = await preview(front)
        assert after.built.tokens < before.built.tokens
        assert stage.state.run is not None
        assert [chunk.place for chunk in shown_chunks(stage.state.run.history)] == [FOUND.place]
        states = {row.place: row.state for row in view_code(stage.state).rows}
        assert states == {FOUND.place: CodeState.IN_PROMPT, OTHER.place: CodeState.LEFT_OUT}
        receipt = view_next_prompt(stage.state, after)
        assert receipt is not None
        assert (receipt.sent, receipt.number) == (False, 1)
        assert {row.place: row.dropped for row in receipt.rows if row.place} == {FOUND.place: False, OTHER.place: True}
        await front.outcome(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        assert "# Hello" not in sent(stage)
        assert "does not matter" not in sent(stage)


async def test_dropping_everything_leaves_no_heading(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        for chunk in (FOUND, OTHER):
            await front.outcome(DropChunk(chunk.place))
        labels = [part.label for part in (await preview(front)).built.parts]
        assert {"rules", "task", "observation"} <= {*labels}
        assert not [label for label in labels if label.startswith("code")]
        await front.outcome(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        assert "Code that may matter" not in sent(stage)


async def test_what_was_dropped_can_be_pinned_and_is_there_once(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        first = await preview(front)
        await front.outcome(DropChunk(OTHER.place))
        await front.outcome(PinChunk(OTHER.place))
        pinned = await preview(front)
        assert f"pinned {OTHER.place}" in [part.label for part in pinned.built.parts]
        await front.outcome(PinChunk(OTHER.place, pinned=False))
        assert (await preview(front)).built.sha == first.built.sha
        await front.outcome(PinChunk(OTHER.place))
        await front.outcome(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        assert sent(stage).count("# Hello") == 1
        assert f"The user pinned {OTHER.place}" in sent(stage)
        assert f"Piece 2: {OTHER.path}, the whole file\n" in sent(stage)


async def test_added_code_is_sent_and_taken_back_again(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        assert stage.state.run is not None
        (Path(stage.state.run.workspace.path) / "more.txt").write_text("more of it\n")
        first = await preview(front)
        await front.outcome(FindCode("more.txt"))
        assert "pinned more.txt:1-1" in [part.label for part in (await preview(front)).built.parts]
        await front.outcome(PinChunk("more.txt:1-1", pinned=False))
        assert (await preview(front)).built.sha == first.built.sha
        await front.outcome(PinChunk("more.txt:1-1"))
        # A pinned file that vanishes is sent as it was shown.
        (Path(stage.state.run.workspace.path) / "more.txt").unlink()
        shown = await preview(front)
        await front.outcome(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        assert "more.txt, the whole file\n```\nmore of it" in sent(stage)
        (built, *_) = [event for event in stage.events if isinstance(event, PromptBuilt)]
        assert built.sha == shown.built.sha


async def test_reading_takes_as_long_as_the_server_took_before(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT, FINISH, approvals=replace(OPEN, merge=Approval.ASK)) as (stage, front):
        assert (await preview(front)).reading_seconds == 0
        await front.outcome(PauseTask(paused=False))
        await front.skip(Permission.MERGE)
        await front.over()
        await front.submit(StartTask(TaskId("T-2")))
        await front.until(lambda it: it.state.past and waits(it))
        told = await preview(front)
        assert told.reading_seconds > 0
        receipt = view_next_prompt(stage.state, told)
        assert receipt is not None
        assert "not sent yet · about " in head_lines(receipt)[1]


async def test_the_first_task_of_a_session_is_estimated_by_what_the_model_did_before(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT, past_speed=50.0) as (stage, front):
        told = await preview(front)
        assert told.reading_seconds == pytest.approx(told.built.tokens / 50, rel=0.3)
        receipt = view_next_prompt(stage.state, told)
        assert receipt is not None
        assert "not sent yet · about " in head_lines(receipt)[1]


async def test_a_model_that_never_answered_here_has_no_estimate_and_that_is_said(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        receipt = view_next_prompt(stage.state, await preview(front))
        assert receipt is not None
        assert head_lines(receipt)[1] == "not sent yet · seconds to read unknown until this model has answered once"


async def test_a_model_that_does_not_answer_is_told_and_the_task_can_be_aborted(tmp_path: Path) -> None:
    async with reviewing(tmp_path) as (stage, front):
        stage.model.facts = ModelUnavailable("the server is gone", advice="start it")
        outcome = await front.outcome(PreviewPrompt())
        assert outcome == Refused("the server is gone (start it)")
        await front.outcome(AbortTask())
        await front.over()
        assert isinstance(await front.outcome(PreviewPrompt()), Refused)


async def test_nobody_is_waited_for_unattended_and_the_wait_outlives_the_process(tmp_path: Path) -> None:
    async with reviewing(tmp_path, RIGHT) as (stage, front):
        await front.outcome(DropChunk(OTHER.place))
    async with reopened(stage) as again:
        assert isinstance(next_move(again.state), AwaitGo)
        assert again.state.run is not None
        assert again.state.run.dropped == (OTHER.place,)
    stage.settings, stage.headless = replace(stage.settings, approvals=OPEN), True
    async with reopened(stage, [RIGHT, FINISH]) as last:
        ending = await run_unattended(last.session, last.recorder, (T1,))
        assert ending.exit_code is ExitCode.DONE
        assert OTHER.text not in "".join(message.text for message in last.model.requests[0].messages)


async def test_in_a_run_of_older_words_a_drop_before_the_first_prompt_reads_as_it_did(tmp_path: Path) -> None:
    async with reviewing(tmp_path) as (stage, front):
        await front.outcome(DropChunk(OTHER.place))
    older = [
        replace(each, event=replace(each.event, wording=1)) if hasattr(each.event, "wording") else each
        for each in stage.journal()
    ]
    state = fold_all(older)
    told = to_messages(build_parts(state, Purpose.EXECUTOR))
    assert "# Hello" in told[1].text
    assert "does not matter; leave it aside" in told[1].text
    assert prompt_sha(told) != prompt_sha(to_messages(build_parts(fold_all(stage.journal()), Purpose.EXECUTOR)))


def test_a_session_of_an_older_version_does_not_wait() -> None:
    kind, body = encode_event(CodeRetrieved("words", (FOUND,)))
    assert decode_event(kind, body) == CodeRetrieved("words", (FOUND,))
    assert Settings().ui.review_context
    assert encode_event(ChunkDropped("a"))[0] == "chunk_dropped"
