"""Repeated calls: a read that tells the same again is told in one line, and a loop is a failed step."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.core.events import ActionFinished, ActionRejected, ActionResult, ContextCompacted, Recorded
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import CompactContext, SayToModel, UndoStep
from agent_workbench.core.settings import Approval, Approvals, Limits, Permission, Settings
from agent_workbench.core.state.growing_tuple import GrowingTuple
from agent_workbench.engine.answer.repeated_calls import ADVICE, AS_IN, loop_warning
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, task
from tests.fakes import runs
from tests.fakes.ports import Hang, Saying

ANY = (task(accept=("true",)),)
READ = call("read_file", '{"path": "answer.txt"}')
AGAIN = call("read_file", '{ "path" : "answer.txt" }', "once more")
LIST = call("list_files")
NOTE = call("note", '{"text": "it is wrong"}')
TESTS = call("run_tests")
SAME = "As in step 1, word for word: nothing has changed since."
WHOLE = "answer.txt, lines 1 to 1 of 1:\nwrong"
LOOP = "the same call 3 times in a row"
TURNS = "two calls that take turns"
ASKED = Approvals(read=Approval.ASK, check=Approval.AUTO)
WRITING = Hang("Thought: I")


async def run(stage: Stage) -> None:
    await run_unattended(stage.session, stage.recorder, (T1,))
    assert stage.read_back() == stage.state
    assert {again.difference for again in rerun(stage.journal())} == {None}


def told(stage: Stage) -> list[str]:
    """Return what the model was told of each of its steps."""
    return [request.messages[-1].text for request in stage.model.requests[1:]]


async def test_the_same_read_is_told_in_one_line_and_the_third_is_a_failed_step(tmp_path: Path) -> None:
    sayings = [READ, READ, READ, READ, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=OPEN, headless=True) as stage:
        await run(stage)
        first, second, third, fourth = told(stage)[:4]
        assert first.startswith(WHOLE)
        assert second == SAME
        assert third == f"As in step 1: {LOOP}, and nothing has changed in between; {ADVICE}."
        assert fourth == third
        results = [event.result for event in stage.events if isinstance(event, ActionFinished)][1:5]
        assert results == [ActionResult.OK] * 2 + [ActionResult.FAILED] * 2


async def test_a_loop_ends_at_the_threshold(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(consecutive_failure_threshold=2))
    stage_of = a_stage(tmp_path, [READ] * 4, tasks=ANY, settings=settings, approvals=OPEN, headless=True)
    async with stage_of as stage:
        await run(stage)
        assert stage.state.run is not None
        assert stage.state.run.reason == "2 steps failed in a row (consecutive_failure_threshold)"


async def test_two_calls_that_alternate_are_a_failed_step(tmp_path: Path) -> None:
    sayings = [READ, LIST, READ, LIST, READ, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=OPEN, headless=True) as stage:
        await run(stage)
        _, _, third, fourth, fifth = told(stage)[:5]
        assert third == SAME
        assert fourth.startswith(f"As in step 2: {TURNS}")
        assert fifth.startswith(f"As in step 1: {TURNS}")


async def test_other_arguments_are_another_call(tmp_path: Path) -> None:
    part = call("read_file", '{"path": "answer.txt", "first_line": 1}')
    sayings = [READ, part, READ, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=OPEN, headless=True) as stage:
        await run(stage)
        assert [text.startswith(WHOLE) for text in told(stage)[:3]] == [True, True, False]


async def test_what_runs_is_not_run_a_third_time(tmp_path: Path) -> None:
    sayings = [TESTS] * 3 + [NOTE] * 3 + [change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=OPEN, headless=True) as stage:
        await run(stage)
        refused = [event for event in stage.events if isinstance(event, ActionRejected)]
        assert [event.step for event in refused] == [3, 6]
        assert [event.reason.partition(",")[0] for event in refused] == [f"run_tests: {LOOP}", f"note: {LOOP}"]
        assert stage.shell.lines.count("true") == 4, "before any change, twice as asked, after the diff"
        assert stage.state.scratchpad(T1).count("it is wrong") == 2


async def test_after_a_change_everything_is_told_again(tmp_path: Path) -> None:
    other = call("write_diff", "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n")
    sayings = [READ, READ, other, READ, READ, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=OPEN, headless=True) as stage:
        await run(stage)
        whole = [text.endswith("wrong\n") or WHOLE in text for text in told(stage)]
        assert whole[0]
        assert whole[3]
        assert told(stage)[4] == "As in step 4, word for word: nothing has changed since."


async def test_what_somebody_changed_by_hand_is_told(tmp_path: Path) -> None:
    sayings: list[Saying] = [READ, AGAIN, READ, change("by hand", "right")]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.READ)
        await front.gate(Permission.READ)
        assert stage.state.run is not None
        Path(stage.state.run.workspace.path, "answer.txt").write_text("by hand\n")
        await front.approve(Permission.READ)
        await front.approve(Permission.READ)
        await front.gate(Permission.DIFF)
        assert [text.partition(":\n")[2] for text in told(stage)[:2]] == ["wrong", "by hand"]
        assert told(stage)[2] == "As in step 2, word for word: nothing has changed since.", "no loop: step 2 told news"


async def test_after_an_undo_a_read_is_told_in_full(tmp_path: Path) -> None:
    sayings: list[Saying] = [READ, change("wrong", "left"), WRITING, READ, WRITING]
    opened = Approvals(check=Approval.AUTO, diff=Approval.AUTO)
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=opened) as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(lambda it: it.live.streaming and it.state.run and it.state.run.step == 3)
        await front.submit(UndoStep())
        await front.until(lambda it: it.live.streaming and len(stage.model.requests) == 5)
        assert told(stage)[3].startswith(WHOLE)


async def test_after_a_summary_a_read_is_told_in_full(tmp_path: Path) -> None:
    sayings: list[Saying] = [READ, READ, "Summary: it was read", READ, change("wrong", "right")]
    asked = replace(ASKED, summary=Approval.AUTO)
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=asked) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.READ)
        await front.gate(Permission.READ)
        await front.submit(CompactContext())
        await front.approve(Permission.READ)
        await front.approve(Permission.READ)
        await front.gate(Permission.DIFF)
        assert any(isinstance(event, ContextCompacted) for event in stage.events)
        assert told(stage)[1].startswith(SAME)
        assert WHOLE in told(stage)[-1]


async def test_a_word_of_the_user_makes_a_call_sensible_again(tmp_path: Path) -> None:
    sayings: list[Saying] = [TESTS, TESTS, TESTS, change("wrong", "right")]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=Approvals()) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.CHECK)
        await front.approve(Permission.CHECK)
        await front.gate(Permission.CHECK)
        await front.submit(SayToModel("it may pass now and then, try again"))
        await front.approve(Permission.CHECK)
        await front.approve(Permission.CHECK)
        await front.gate(Permission.DIFF)
        assert not [event for event in stage.events if isinstance(event, ActionRejected)]


async def test_a_task_that_is_finished_again_is_no_repeated_call(tmp_path: Path) -> None:
    sayings = [change("wrong", "right"), FINISH, FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=replace(OPEN, commit=Approval.ASK)) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.reject(Permission.COMMIT, "not yet")
            await front.approve(Permission.COMMIT)
            await front.gate(Permission.MERGE)
        finished = [event.observation for event in stage.events if isinstance(event, ActionFinished)]
        assert not any(AS_IN in each for each in (*told(stage), *finished))


class CountedHistory(GrowingTuple[Recorded]):
    """History that counts the events which are read of it."""

    def __init__(self, events: tuple[Recorded, ...]) -> None:
        super().__init__(events)
        self.read = 0

    def __iter__(self) -> Iterator[Recorded]:
        return map(self._counted, super().__iter__())

    def __reversed__(self) -> Iterator[Recorded]:
        return map(self._counted, super().__reversed__())

    def _counted(self, recorded: Recorded) -> Recorded:
        self.read += 1
        return recorded


def test_a_loop_is_found_in_the_newest_events_of_a_long_task() -> None:
    proposal = runs.proposed(Permission.READ, "read_file", "", "")
    steps = (
        (
            *runs.answered(number, READ),
            *runs.approved(replace(proposal, id=ProposalId(f"P-{number}"), step=number)),
            ActionFinished(ProposalId(f"P-{number}"), ActionResult.FAILED, "no file"),
        )
        for number in range(1, 200)
    )
    events = (*runs.opening(), *runs.started(), *chain.from_iterable(steps))
    state = fold_all(tuple(Recorded(seq, "", event) for seq, event in enumerate(events)))
    assert state.run is not None
    history = CountedHistory(tuple(state.run.history))
    assert LOOP in loop_warning(replace(state.run, history=history))
    assert history.read < 100
