"""A prompt sends each change once, an answer that was cut not whole, and no check as the last one when others ran."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.events import Recorded
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import CompactContext
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.engine.prompt.repeated_lines import is_as_written, split_repeated, without_repeated
from agent_workbench.engine.rerun import messages_of, prompts_of, rerun
from tests.engine.front import in_front_of
from tests.engine.stage import ACCEPT, FINISH, OPEN, Stage, a_stage, call, change, diff, reflexion, task
from tests.engine.test_executor import run
from tests.fakes.ports import Cut, GivenChunks, Hang, Saying

BODY = [f"line {number} of what is new" for number in range(6)]
NEW = "".join(f"{line}\n" for line in BODY)
ADDING = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,6 @@\n" + "".join(f"+{line}\n" for line in BODY)
SUMMARY = "Summary: a file was added, and the answer is still to be made right."


def text_of(stage: Stage, request: int) -> str:
    return "\n".join(message.text for message in stage.model.requests[request].messages)


def times(stage: Stage, request: int, line: str = BODY[2]) -> int:
    return text_of(stage, request).count(line)


async def test_what_the_model_wrote_is_sent_once_through_outcome_and_failing_checks(tmp_path: Path) -> None:
    accept = f"cat new.txt && {ACCEPT}"
    sayings = [call("write_diff", ADDING), reflexion("the answer is not right yet"), change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=(task(accept=(accept,)),), approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
        assert [times(stage, request) for request in range(4)] == [0, 1, 1, 1]
        told = text_of(stage, 2)
        assert "The lines are as in your diff: new.txt:1-7." in told
        assert "… 6 lines of the change cut …" in told, "a runner printed them again"


async def test_what_the_user_made_of_a_diff_is_shown(tmp_path: Path) -> None:
    sayings: list[Saying] = [change("wrong", "rigth"), Hang("Thought: hm")]
    async with a_stage(tmp_path, sayings, approvals=replace(OPEN, diff=Approval.ASK)) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.edit(Permission.DIFF, diff("wrong", "right"))
            await front.approve(Permission.DIFF)
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert "answer.txt:1-2 now reads:\nright" in text_of(stage, 1)


@pytest.mark.parametrize("fails", [True, False])
async def test_after_a_summary_the_change_stands_in_one_place(tmp_path: Path, *, fails: bool) -> None:
    last = [call("write_diff", ADDING), reflexion("not right yet")] if fails else [call("write_diff", ADDING)]
    accept = (ACCEPT,) if fails else ("true",)
    sayings: list[Saying] = [call("read_file", '{"path": "README.md"}'), *last, SUMMARY, Hang("Thought: hm")]
    found = GivenChunks((Chunk("answer.txt", 1, 1, "wrong", 1.0),))
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    tasks = (task(accept=accept),)
    async with a_stage(tmp_path, sayings, tasks=tasks, approvals=approvals, retriever=found) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            await front.submit(CompactContext())
            await front.approve(Permission.DIFF)
            await front.until(lambda it: it.state.run and it.state.run.compactions and it.live.streaming)
        assert times(stage, -1) == 1
        (compacted,) = [event for event in stage.events if isinstance(event, e.ContextCompacted)]
        assert ("Checks failed." in text_of(stage, -1)) is fails
        assert not [step for step in rerun(stage.journal()) if step.difference]
        assert [chunk.path for chunk in compacted.code] == ["answer.txt"], "what is no part of the change stays"


async def test_a_summary_does_not_call_a_run_of_checks_the_last_one(tmp_path: Path) -> None:
    steps = [change("wrong", "rigth"), reflexion(), call("list_files"), call("list_files"), change("rigth", "bad")]
    sayings: list[Saying] = [*steps, SUMMARY, change("rigth", "right"), FINISH]
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    async with a_stage(tmp_path, sayings, approvals=approvals) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.DIFF)
            await front.gate(Permission.DIFF)
            await front.submit(CompactContext())
            await front.reject(Permission.DIFF, "not bad")
            await front.approve(Permission.DIFF)
            await front.gate(Permission.MERGE)
        told = text_of(stage, -1)
        assert "How the checks ended last" not in told
        assert told.index("How the checks had ended at this point") < told.index("Checks failed.")
        assert told.index("Checks failed.") < told.index("All checks passed.")


async def test_an_answer_that_was_cut_goes_back_as_its_first_lines_and_a_count(tmp_path: Path) -> None:
    long = "Thought: " + "\n".join(f"on and on {number}" for number in range(400))
    async with a_stage(tmp_path, [Cut(long), change("wrong", "right"), FINISH], approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
        told = text_of(stage, 1)
        assert "on and on 3" in told
        assert "on and on 100" not in told
        assert "400 lines" in told
        assert "Be shorter." in told
        assert not [step for step in rerun(stage.journal()) if step.difference]


async def test_a_session_recorded_before_is_told_as_it_was(tmp_path: Path) -> None:
    long = "Thought: " + "".join(f"on and on {number}\n" for number in range(400))
    async with a_stage(tmp_path, [Cut(long), change("wrong", "right"), FINISH], approvals=OPEN, headless=True) as stage:
        await run(stage)
        events = [_older(recorded) for recorded in stage.journal()]
    again = "\n".join(message.text for message in messages_of(list(prompts_of(events))[1]))
    assert long in again
    assert "Your answer was cut because it was too long, and was not taken. Be shorter." in again


def _older(recorded: Recorded) -> Recorded:
    event = recorded.event
    return replace(recorded, event=replace(event, wording=0)) if isinstance(event, e.TaskStarted) else recorded


def test_the_lines_of_a_change_are_cut_out_of_output_and_code() -> None:
    output = "\n".join(["before", *BODY[:3], "", *BODY[3:], "> fails", *BODY[:2], "E   why"])
    assert without_repeated(output, set(BODY)).split("\n") == [
        *("before", "… 7 lines of the change cut …", "> fails", *BODY[:2], "E   why"),
    ]
    other = [f"other {number}" for number in range(5)]
    chunk = Chunk("a.py", 11, 25, "\n".join([*other, *BODY, "rest", "", *other[:2]]), 1.0, tokens=30)
    kept, repeated = split_repeated(chunk, set(BODY))
    assert [(each.first_line, each.last_line) for each in kept] == [(11, 15), (22, 25)]
    assert [(each.place, each.text) for each in repeated] == [("a.py:16-21", "\n".join(BODY))]
    short = Chunk("a.py", 1, 8, "\n".join(["one", *BODY, "two"]), 1.0)
    assert split_repeated(short, set(BODY)) == ((), (short,)), "what little is beside it is the diff's context"
    assert split_repeated(chunk, set(other[:2])) == ((chunk,), ())


def test_a_diff_counts_as_written_where_no_line_of_it_is_another() -> None:
    written = DiffProposal(ProposalId("P-1"), "write_diff", ADDING, 1, diff=ADDING)
    assert is_as_written(written)
    assert not is_as_written(replace(written, diff=ADDING.replace("line 2", "    line 2")))
    assert not is_as_written(replace(written, edited=True))
    assert not is_as_written(replace(written, tool="keep_changes"))
