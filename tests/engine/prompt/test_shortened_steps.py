"""After a compaction no text is in the prompt twice, and diffs that no longer count are one line."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.intents import CompactContext
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.engine.rerun import messages_of, prompts_of, rerun
from tests.engine.front import in_front_of
from tests.engine.stage import OPEN, Stage, a_stage, call, change, reflexion, task
from tests.fakes.ports import GivenChunks, Hang, Saying

BODY = [f"value_{number} = compute({number})" for number in range(12)]
ADDING = "--- /dev/null\n+++ b/new.py\n@@\n" + "".join(f"+{line}\n" for line in BODY)
REPLACING = "--- a/new.py\n+++ b/new.py\n@@\n" + "".join(
    f"-{line}\n+{line.replace('compute', 'make')}\n" for line in BODY[:6]
)
LONG = [f"def function_{number}(): return {number}" for number in range(40)]
SUMMARY = "Summary: a file was added and changed; the answer is still to be made right."
APPROVALS = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
RUN = 4
"""Fewer lines in a row may be in a prompt twice."""


def repeated_runs(stage: Stage) -> list[str]:
    """Return the runs of lines that are in the last prompt twice; the rules, which never change, are not counted."""
    lines: list[str] = []
    for message in stage.model.requests[-1].messages[1:]:
        lines += [line.lstrip("+-> ").strip() for line in message.text.split("\n")]
    lines = [line for line in lines if line]
    runs = Counter("\n".join(lines[at : at + RUN]) for at in range(len(lines) - RUN + 1))
    return [text for text, count in runs.items() if count > 1]


async def compacted_at_gate(folder: Path, steps: list[Saying], *, verdicts: str, accept: str = "false") -> Stage:
    """Do these steps and sum up at the gate of the last diff; `verdicts`: `a`pprove or `r`eject, for each diff."""
    found = GivenChunks(
        (Chunk("long.py", 1, 30, "\n".join(LONG[:30]), 1.0), Chunk("long.py", 20, 40, "\n".join(LONG[19:]), 1.0))
    )
    sayings = [*steps, SUMMARY, Hang("Thought: hm")]
    tasks = (task(accept=(accept,)),)
    start = {"long.py": "".join(f"{line}\n" for line in LONG), "answer.txt": "wrong\n"}
    async with a_stage(folder, sayings, tasks=tasks, approvals=APPROVALS, retriever=found, start=start) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            for number, verdict in enumerate(verdicts, 1):
                await front.gate(Permission.DIFF)
                if number == len(verdicts):
                    await front.submit(CompactContext())
                await (front.approve(Permission.DIFF) if verdict == "a" else front.reject(Permission.DIFF, "not so"))
            await front.until(lambda it: it.state.run and it.state.run.compactions and it.live.streaming)
        assert not [step.difference for step in rerun(stage.journal()) if step.difference]
    return stage


def told(stage: Stage) -> str:
    return "\n".join(message.text for message in stage.model.requests[-1].messages[1:])


async def test_a_diff_that_another_one_replaced_is_one_line(tmp_path: Path) -> None:
    steps: list[Saying] = [call("write_diff", ADDING, "add it"), call("write_diff", REPLACING)]
    stage = await compacted_at_gate(tmp_path, steps, verdicts="aa", accept="true")
    assert repeated_runs(stage) == []
    assert told(stage).count("… the diff of new.py: what is left of it is in the change above …") == 2
    assert told(stage).count(BODY[11]) == 1, "what is left of the first one is in the change"
    assert BODY[0] not in told(stage)


async def test_a_rejected_diff_before_another_one_is_one_line_and_the_newest_stays(tmp_path: Path) -> None:
    steps: list[Saying] = [call("write_diff", ADDING), change("wrong", "rigth")]
    stage = await compacted_at_gate(tmp_path, steps, verdicts="rr")
    assert repeated_runs(stage) == []
    assert "… the diff of new.py: it was rejected, and another one followed …" in told(stage)
    assert BODY[3] not in told(stage)
    assert "+rigth" in told(stage), "the model may have to correct it"


@pytest.mark.parametrize("first", [call("read_file", '{"path": "long.py"}'), call("list_files")])
async def test_code_that_a_step_shows_is_not_shown_apart(tmp_path: Path, first: str) -> None:
    stage = await compacted_at_gate(tmp_path, [first, change("wrong", "rigth"), reflexion()], verdicts="a")
    assert repeated_runs(stage) == []
    assert told(stage).count(LONG[25]) == 1
    assert told(stage).count("Checks failed.") == 1


async def test_a_session_of_wording_1_keeps_its_diffs(tmp_path: Path) -> None:
    steps: list[Saying] = [call("write_diff", ADDING, "add it"), call("write_diff", REPLACING)]
    stage = await compacted_at_gate(tmp_path, steps, verdicts="aa", accept="true")
    older = [
        replace(each, event=replace(each.event, wording=1)) if isinstance(each.event, e.TaskStarted) else each
        for each in stage.journal()
    ]
    again = "\n".join(message.text for message in messages_of(list(prompts_of(older))[-1]))
    assert "the diff of new.py:" not in again
    assert f"+{BODY[0]}" in again
