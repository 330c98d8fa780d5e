"""A prompt begins with the one before, whatever came in between; and it holds what belongs to its task alone."""

from itertools import pairwise
from pathlib import Path

from agent_workbench.core.events import Author, ScratchpadChanged
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import EditScratchpad
from agent_workbench.core.model import Message, Purpose
from agent_workbench.core.settings import Approval, Approvals, Permission
from tests.engine.front import in_front_of
from tests.engine.stage import T1, Stage, a_stage, call, change, reflexion, reopened, task
from tests.fakes.ports import Hang, Saying

ALL_BUT_COMMIT = Approvals(check=Approval.AUTO, diff=Approval.AUTO)
CHECKS_OPEN = Approvals(check=Approval.AUTO)
RIGHT, WRONG = change("wrong", "right"), change("wrong", "rigth")


def prompts(*stages: Stage) -> list[tuple[Message, ...]]:
    """Return what the model was asked, in order."""
    return [request.messages for stage in stages for request in stage.model.requests]


def all_text(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.text for message in messages)


async def test_a_prompt_after_an_interrupted_reflexion_begins_with_the_one_before(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [WRONG, Hang("Reflexion: I")], approvals=ALL_BUT_COMMIT) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text == "Reflexion: I")
        sayings: list[Saying] = [
            reflexion("I misspelt it"),
            call("read_file", '{"path": "answer.txt"}'),
            Hang("Thought: hm"),
        ]
        async with reopened(stage, sayings) as again, in_front_of(again) as front:
            await front.until(lambda it: it.live.streaming and it.live.streaming.text == "Thought: hm")
        purposes = [request.purpose for each in (stage, again) for request in each.model.requests]
        assert purposes == [
            *(Purpose.EXECUTOR, Purpose.REFLEXION, Purpose.REFLEXION, Purpose.EXECUTOR, Purpose.EXECUTOR),
        ]
        asked = prompts(stage, again)
        assert asked[2] == asked[1], "asked in vain, it is asked the same again"
        for earlier, later in pairwise(asked):
            assert later[: len(earlier)] == earlier


async def test_a_reflexion_asked_again_after_news_begins_with_the_one_before(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [WRONG, Hang("Reflexion: I")], approvals=ALL_BUT_COMMIT) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text == "Reflexion: I")
            await front.submit(EditScratchpad(T1, "", "mind the spelling\n"))
            await front.until(lambda it: it.state.scratchpad(T1))
        async with reopened(stage, [reflexion(), Hang("Thought: hm")]) as again, in_front_of(again) as front:
            await front.until(lambda it: it.live.streaming and it.live.streaming.text == "Thought: hm")
        first, second, third = prompts(stage, again)[1:]
        assert second[: len(first) - 1] == first[:-1]
        assert second[len(first) - 1].text.startswith(first[-1].text), "what is new stands at the end"
        assert "mind the spelling" in all_text(second)
        assert third[: len(second)] == second


async def test_the_notes_of_another_task_stay_out(tmp_path: Path) -> None:
    tasks = (task(), task("T-2"))
    async with (
        a_stage(tmp_path, [RIGHT, Hang("Thought: hm")], tasks=tasks, approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        await front.submit(EditScratchpad(TaskId("T-2"), "", "for the second task alone\n"))
        await front.submit(EditScratchpad(T1, "", "for this task\n"))
        await front.until(lambda it: it.state.scratchpad(TaskId("T-2")) and it.state.scratchpad(T1))
        await front.reject(Permission.DIFF, "not like that")
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        shown = all_text(prompts(stage)[-1])
        assert "for this task" in shown
        assert "for the second task alone" not in shown


async def test_notes_that_were_edited_while_it_was_closed_are_read(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
        stage.user.write("memory/scratch/T-1.md", "written meanwhile\n")
        async with reopened(stage, [Hang("Thought: hm")]) as again, in_front_of(again) as front:
            await front.until(lambda it: it.state.scratchpad(T1) == "written meanwhile\n")
            await front.reject(Permission.DIFF, "not like that")
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            assert "written meanwhile" in all_text(prompts(again)[-1])
        assert [event.by for event in stage.events if isinstance(event, ScratchpadChanged)] == [Author.USER]
        async with reopened(stage, [Hang("Thought: hm")]) as third, in_front_of(third) as front:
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert len([event for event in stage.events if isinstance(event, ScratchpadChanged)]) == 1, "it was no news"
