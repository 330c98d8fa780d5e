import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.journal.reader import verify_journal
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import ContextOverflow, ExitCode, ModelRefused, ModelUnavailable, WorkspaceError
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionRejected,
    ActionResult,
    ActionStarted,
    CheckpointTaken,
    CodeRetrieved,
    Event,
    InterruptCause,
    ModelInterrupted,
    ModelObserved,
    PatchApplied,
    PromptBuilt,
    ReflexionNoted,
    ScratchpadChanged,
    TaskCommitted,
    TaskFinished,
    TaskRolledBack,
    TaskStarted,
    TaskStatusChanged,
    TestsFinished,
    TroubleMet,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import RetryTrouble, StartTask
from agent_workbench.core.plan import Budget, Constraints, PathScope, TaskStatus
from agent_workbench.core.proposals import COMMIT, Verdict
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.settings import Approval, Approvals, Limits, Permission, ReflexionTiming, Settings
from agent_workbench.core.settings.models import ModelSettings
from agent_workbench.engine.prompt.prompt_size import MARK_TOKENS, summary_tokens
from agent_workbench.engine.prompt.prompt_text import SUMMARY
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.task.task_start import start_task
from tests.adapters.git.fingerprint import fingerprint
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, SESSION, T1, Stage, a_stage, call, change, kinds, reflexion, reopened, task
from tests.fakes.ports import FACTS, Break, Cut, GivenChunks, Saying, words

WRONG, RIGHT = change("wrong", "rigth"), change("rigth", "right")


async def run(stage: Stage, *tasks: str) -> SessionEnd:
    """Run headless to the end, and check that the journal tells the same as the state."""
    ending = await run_unattended(stage.session, stage.recorder, tuple(map(TaskId, tasks)) or None)
    assert stage.read_back() == stage.state
    return ending


async def test_the_whole_way(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [WRONG, reflexion(), RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        before = fingerprint(stage.user.root, ("memory",))
        ending = await run(stage)
        assert (ending.exit_code, ending.reason) == (ExitCode.DONE, "T-1 done: committed")
        assert fingerprint(stage.user.root, ("memory",)) == before
        story = [
            event
            for event in kinds(stage.events)
            if event not in {"ActionProposed", "ActionDecided", "ActionStarted", "ActionFinished", "PromptBuilt"}
        ]
        assert story == [
            *("SessionStarted", "SessionConfigured", "PlanRead", "TaskStarted", "TaskStatusChanged"),
            *("TestsFinished", "CodeRetrieved", "ModelObserved", "ModelAnswered"),
            *("PatchApplied", "CheckpointTaken", "TestsFinished", "ModelAnswered", "ReflexionNoted"),
            *("ModelAnswered", "PatchApplied", "CheckpointTaken", "TestsFinished", "ModelAnswered"),
            *("TaskCommitted", "ScratchpadChanged", "TaskStatusChanged", "TaskFinished", "SessionLeft"),
        ]
        purposes = [event.purpose for event in stage.events if isinstance(event, TestsFinished)]
        assert purposes == [CheckPurpose.BASELINE, CheckPurpose.AFTER_DIFF, CheckPurpose.AFTER_DIFF]
        steps = [event.step for event in stage.events if isinstance(event, PromptBuilt)]
        assert steps == [1, 1, 2, 3]


async def test_every_effect_has_its_start_and_its_end(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [WRONG, reflexion(), RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        await run(stage)
        running: ActionStarted | None = None
        for event in stage.events:
            match event:
                case ActionStarted():
                    assert running is None
                    running = event
                case PatchApplied() | TestsFinished() | TaskCommitted() | CheckpointTaken():
                    assert running is not None
                case ActionFinished():
                    assert running is not None
                    assert running.proposal_id == event.proposal_id
                    running = None
                case _:
                    pass
        assert running is None


async def test_the_commit_names_its_approval(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [change("wrong", "right"), FINISH], approvals=OPEN, headless=True) as stage:
        await run(stage)
        message = stage.git("log", "-1", "--format=%B", "agent/T-1")
        named = re.search(r"^Agent-Journal: (\S+):(\d+):([0-9a-f]{64})$", message, re.MULTILINE)
        assert named is not None
        assert named[1] == SESSION
        approval = stage.journal()[int(named[2])]
        assert approval.hash == named[3]
        assert isinstance(approval.event, ActionDecided)
        assert approval.event.verdict is Verdict.APPROVE
        (committed,) = [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert committed.commit == stage.git("rev-parse", "agent/T-1")
        assert verify_journal_of(stage)
        assert "the answer is right" in message


def verify_journal_of(stage: Stage) -> bool:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(verify_journal, stage.sessions / SESSION).result().ok


async def test_a_checkpoint_names_the_journal(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [change("wrong", "right"), FINISH], approvals=OPEN, headless=True) as stage:
        await run(stage)
        (kept,) = [event.checkpoint for event in stage.events if isinstance(event, CheckpointTaken)]
        named = re.search(r"Agent-Journal: (\S+):(\d+):(\S+)", stage.git("log", "-1", "--format=%B", kept.ref))
        assert named is not None
        assert (named[1], stage.journal()[int(named[2])].hash) == (SESSION, named[3])


async def test_what_tests_leave_behind_is_in_no_commit(tmp_path: Path) -> None:
    messy = task(
        accept=("echo junk > junk.txt; echo more >> README.md; rm -f answer.txt.bak; grep -q right answer.txt",)
    )
    sayings = [change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=(messy,), approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert stage.git("diff", "--name-only", "main", "agent/T-1") == "answer.txt"
        restored = {event.restored_paths for event in stage.events if isinstance(event, TestsFinished)}
        assert restored == {("README.md",)}


CHECKS = Approvals(check=Approval.AUTO)
WORSE_RIGHT = change("worse", "right")
LIMITED = Limits(max_tool_calls_per_task=3, max_reflexion_retries=2, consecutive_failure_threshold=1)
"""Limits of a task whose check fails at first: twice as many steps may fail in a row."""
LOOK = call("list_files")


@pytest.mark.parametrize(
    ("sayings", "limits", "budget", "reason"),
    [
        ([LOOK] * 3, LIMITED, Budget(), "max_tool_calls_per_task"),
        (["no step at all"] * 2, LIMITED, Budget(), "consecutive_failure_threshold"),
        ([Cut("Thought: too lo")] * 2, LIMITED, Budget(), "consecutive_failure_threshold"),
        ([change("nowhere", "x")] * 2, LIMITED, Budget(), "consecutive_failure_threshold"),
        (
            [WRONG, reflexion(), change("rigth", "a"), reflexion(), change("a", "b")],
            replace(LIMITED, consecutive_failure_threshold=9, max_tool_calls_per_task=9),
            Budget(),
            "max_reflexion_retries",
        ),
        ([], LIMITED, Budget(tokens=10), "the task's budget"),
        ([LOOK], LIMITED, Budget(tokens=600), "the task's budget"),
        ([LOOK] * 2, replace(LIMITED, max_tool_calls_per_task=99), Budget(minutes=0.02), "the task's budget"),
    ],
    ids=["calls", "malformed", "cut", "refused", "reflexions", "no tokens", "tokens", "minutes"],
)
async def test_past_each_limit_the_task_is_rolled_back(
    tmp_path: Path, sayings: list[Saying], limits: Limits, budget: Budget, reason: str
) -> None:
    settings = Settings(limits=limits)
    tasks = (replace(task(), budget=budget),)
    async with a_stage(tmp_path, sayings, tasks=tasks, settings=settings, approvals=OPEN, headless=True) as stage:
        ending = await run(stage, "T-1")
        assert ending.exit_code is ExitCode.FAILED
        assert reason in ending.reason
        assert not stage.model.sayings or budget.minutes
        assert [event.status for event in stage.events if isinstance(event, TaskFinished)] == [TaskStatus.FAILED]
        assert stage.plan.plan.task(T1).status is TaskStatus.FAILED
        assert not [event for event in stage.events if isinstance(event, TaskCommitted)]


async def test_a_reflexion_comes_before_the_threshold(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(max_reflexion_retries=1, consecutive_failure_threshold=1))
    sayings = [WRONG, reflexion(), RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, settings=settings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE


@pytest.mark.parametrize(
    ("timing", "sayings"),
    [
        (ReflexionTiming.ALWAYS, [WRONG, reflexion(), change("rigth", "worse"), reflexion(), WORSE_RIGHT]),
        (ReflexionTiming.AFTER_SECOND_FAILURE, [WRONG, change("rigth", "worse"), reflexion(), WORSE_RIGHT]),
        (ReflexionTiming.NEVER, [WRONG, change("rigth", "worse"), WORSE_RIGHT]),
    ],
)
async def test_the_settings_say_when_the_model_reflects(
    timing: ReflexionTiming, sayings: list[str], tmp_path: Path
) -> None:
    settings = Settings(limits=Limits(reflexion=timing))
    async with a_stage(tmp_path, [*sayings, FINISH], settings=settings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        wanted = sum(saying.startswith("Reflexion") for saying in sayings)
        assert kinds(stage.events).count("ReflexionNoted") == wanted
        assert "FAILED (1)" in stage.model.requests[1].messages[-1].text, (
            "the failure is in the next prompt in any case"
        )
        assert [each.difference for each in rerun(stage.journal()) if each.difference] == []


@pytest.mark.parametrize("second", [change("rigth", "worse"), "no step at all"])
async def test_the_threshold_counts_after_the_reflexion(tmp_path: Path, second: str) -> None:
    settings = Settings(limits=Limits(max_reflexion_retries=1, consecutive_failure_threshold=1))
    sayings = [WRONG, reflexion(), second]
    async with a_stage(tmp_path, sayings, settings=settings, approvals=OPEN, headless=True) as stage:
        ending = await run(stage, "T-1")
        assert ending.reason == "T-1 failed: 2 steps failed in a row (consecutive_failure_threshold)"
        assert not stage.git("branch", "--list", "agent/*"), "a branch without a commit would only take the name"
        assert stage.git("for-each-ref", f"refs/agent/{SESSION}")


async def test_attempts_stay_restorable_after_a_rollback(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(max_reflexion_retries=1))
    sayings = [WRONG, reflexion(), change("rigth", "worse")]
    async with a_stage(tmp_path, sayings, settings=settings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.FAILED
        kept = [event.checkpoint.ref for event in stage.events if isinstance(event, CheckpointTaken)]
        assert all(ref.startswith(f"refs/agent/{SESSION}/") for ref in kept)
        attempts = [stage.git("show", f"{ref}:answer.txt") for ref in kept]
        assert attempts[:2] == ["rigth", "worse"]
        state = stage.state.run
        assert state is not None
        worktree = Path(state.workspace.path)
        assert (worktree / "answer.txt").read_text() == "wrong\n"
        assert not [event for event in stage.events if isinstance(event, TaskCommitted)]
        workspace = await stage.ports.workspaces.open(stage.user.request(session=SESSION))
        try:
            assert state.checkpoint is not None
            await workspace.restore(state.checkpoint.commit)
            assert (worktree / "answer.txt").read_text() == "worse\n"
        finally:
            await workspace.release(keep=True)


async def test_what_passed_before_must_not_fail_now(tmp_path: Path) -> None:
    settings = Settings(test_command="test -e README.md", lint_command="false")
    breaking = (
        "--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-wrong\n+right\n"
        "--- a/README.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-# Hello\n"
    )
    sayings = [call("write_diff", breaking), reflexion()]
    async with a_stage(tmp_path, sayings, settings=settings, approvals=Approvals(check=Approval.AUTO)) as stage:
        stage.model.sayings.append(call("write_diff", "--- /dev/null\n+++ b/README.md\n@@ -0,0 +1 @@\n+# Back\n"))
        stage.model.sayings.append(FINISH)
        async with in_front_of(stage) as front:
            await front.start()
            deletion = await front.approve(Permission.DIFF)
            assert deletion.special == ("README.md",)
            await front.approve(Permission.DIFF)
            await front.gate(Permission.COMMIT)
        run_ = stage.state.run
        assert run_ is not None
        assert run_.checks == ("grep -q right answer.txt", "test -e README.md", "false")
        assert [event.step for event in stage.events if isinstance(event, ReflexionNoted)] == [1]


async def test_finishing_too_early_is_told(tmp_path: Path) -> None:
    sayings = [FINISH, FINISH, reflexion("I did nothing"), change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert "The final checks:\nChecks failed." in stage.model.requests[2].messages[-1].text


async def test_a_dependency_that_is_not_merged_is_the_base(tmp_path: Path) -> None:
    second = replace(task("T-2", accept=("grep -q best answer.txt",)), depends_on=(T1,))
    sayings = [change("wrong", "right"), FINISH, change("right", "best"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=(task(), second), approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        first, last = [event for event in stage.events if isinstance(event, TaskCommitted)]
        started = [event for event in stage.events if isinstance(event, TaskStarted)]
        assert [event.workspace.base for event in started] == [stage.user.head(), first.commit]
        assert stage.git("rev-parse", f"{last.commit}^") == first.commit


async def test_several_dependencies_that_are_not_merged_block_a_task(tmp_path: Path) -> None:
    first, second = task("T-1"), task("T-2", accept=("grep -q two two.txt",))
    third = replace(task("T-3"), depends_on=(first.id, second.id))
    new = call("write_diff", "--- /dev/null\n+++ b/two.txt\n@@ -0,0 +1 @@\n+two\n")
    sayings = [change("wrong", "right"), FINISH, new, FINISH]
    async with a_stage(tmp_path, sayings, tasks=(first, second, third), approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.PARKED
        assert "several tasks that are not merged yet: T-1, T-2" in ending.reason
        assert stage.plan.plan.task(third.id).status is TaskStatus.BLOCKED


async def test_several_dependencies_refuse_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = tuple(replace(task(name), status=TaskStatus.DONE) for name in ("T-1", "T-2"))
    third = replace(task("T-3"), depends_on=(done[0].id, done[1].id))
    async with a_stage(tmp_path, tasks=(*done, third)) as stage:
        head = stage.user.head()

        async def unmerged(_: TaskId) -> str:
            return head

        monkeypatch.setattr(stage.ports.workspaces, "task_commit", unmerged)
        with pytest.raises(WorkspaceError, match="T-1, T-2") as refused:
            await start_task(stage.session, third.id)
        assert "merge them first" in refused.value.advice
        assert stage.state.run is None


async def test_the_context_is_full(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [], approvals=OPEN, headless=True) as stage:
        stage.model.facts = replace(FACTS, context_tokens=100)
        ending = await run(stage)
        assert ending.exit_code is ExitCode.MODEL
        assert "the context of 100 tokens is too small for T-1" in ending.reason
        assert "without the code that was found its first prompt still has" in ending.reason
        assert not stage.model.requests
        assert not [event for event in stage.events if isinstance(event, PromptBuilt)], "it was never sent"


async def test_the_server_says_that_the_context_is_full(tmp_path: Path) -> None:
    full = ContextOverflow("too long", prompt_tokens=9000, context_tokens=8192)
    async with a_stage(tmp_path, [full, full], approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.MODEL
        assert "the context of 8192 tokens is too small for T-1" in ending.reason
        assert "still has 9000" in ending.reason


async def test_an_answer_gets_what_room_there_is(tmp_path: Path) -> None:
    settings = Settings(model=ModelSettings(answer_tokens=500))
    async with a_stage(tmp_path, [WRONG, reflexion(), RIGHT], settings=settings, approvals=OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.state.run and it.state.run.step == 2)
            stage.model.facts = replace(FACTS, context_tokens=1)
            await front.approve(Permission.SUMMARY)
            await front.trouble()
        first, second, third = stage.model.requests
        assert first.answer_tokens == 500
        assert second.answer_tokens == 400
        assert third.answer_tokens == 500
        assert 'root ::= "Thought: "' in first.grammar
        assert 'root ::= "Reflexion: "' in second.grammar


async def test_a_nearly_full_context_shortens_the_answer(tmp_path: Path) -> None:
    sayings = [change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        stage.model.facts = replace(FACTS, context_tokens=900)
        assert (await run(stage)).exit_code is ExitCode.DONE
        request = stage.model.requests[0]
        prompt = sum(words(message.text) for message in request.messages) + MARK_TOKENS * len(request.messages)
        assert request.prompt_tokens == prompt
        assert request.answer_tokens == 900 - prompt - summary_tokens(900) - words(SUMMARY) - 2 * MARK_TOKENS


@pytest.mark.parametrize("error", [ModelUnavailable("nobody answers"), ModelRefused("wrong key")])
async def test_a_model_that_does_not_answer_ends_an_unattended_run(
    tmp_path: Path, error: ModelUnavailable | ModelRefused
) -> None:
    async with a_stage(tmp_path, [error], approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        assert (ending.exit_code, ending.reason) == (ExitCode.MODEL, str(error))
        assert [event.source for event in stage.events if isinstance(event, TroubleMet)] == ["model"]
        assert stage.state.unfinished


async def test_a_model_that_cannot_be_observed_is_trouble(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [], approvals=OPEN, headless=True) as stage:
        stage.model.facts = ModelUnavailable("no model is configured")
        stage.model.facts.lasting = True
        assert (await run(stage)).exit_code is ExitCode.MODEL
        assert [event.lasting for event in stage.events if isinstance(event, TroubleMet)] == [True]
        assert not [event for event in stage.events if isinstance(event, ModelObserved)]


async def test_a_broken_answer_is_kept_and_never_executed(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Break(change("wrong", "right"))], approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.MODEL
        (broken,) = [event for event in stage.events if isinstance(event, ModelInterrupted)]
        assert (broken.cause, broken.partial) == (InterruptCause.DIED, change("wrong", "right"))
        assert not [event for event in stage.events if isinstance(event, PatchApplied)]


async def test_a_cut_answer_is_told_and_never_executed(tmp_path: Path) -> None:
    sayings: list[Saying] = [Cut(change("wrong", "right")), change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert "was cut at 16 tokens because it was too long" in stage.model.requests[1].messages[-1].text
        assert len([event for event in stage.events if isinstance(event, PatchApplied)]) == 1


async def test_malformed_answers_are_told_exactly(tmp_path: Path) -> None:
    sayings = ["hello", call("read_file", '{"file": "x"}'), call("read_file", '{"path": "nowhere"}')]
    sayings += [change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        told = [request.messages[-1].text for request in stage.model.requests[1:4]]
        assert told == [
            "That step was not taken: the answer does not begin with `Thought: `",
            "That step was not taken: read_file: unknown argument 'file'; known are: path, first_line, last_line",
            "That step was not taken: read_file: argument 'path' cannot be 'nowhere'; nothing there is like it",
        ]
        assert len([event for event in stage.events if isinstance(event, ActionRejected)]) == 3


async def test_what_cannot_be_read_is_not_shown(tmp_path: Path) -> None:
    secret = Chunk("secret.txt", 1, 1, "hush", 2.0)
    public = Chunk("README.md", 1, 1, "# Hello", 1.0)
    narrow = replace(task(), scope=PathScope(allowed_read_globs=("*.md", "answer.txt")))
    sayings = [
        call("read_file", '{"path": "secret.txt"}'),
        call("list_files"),
        call("grep", '{"text": "h"}'),
        call("search_code", '{"query": "h"}'),
        change("wrong", "right"),
        FINISH,
    ]
    retriever = GivenChunks((secret, public))
    async with a_stage(tmp_path, sayings, tasks=(narrow,), approvals=OPEN, headless=True, retriever=retriever) as stage:
        stage.user.write("secret.txt", "hush\n")
        stage.user.commit("A secret")
        assert (await run(stage)).exit_code is ExitCode.DONE
        (found,) = [event for event in stage.events if isinstance(event, CodeRetrieved)]
        assert [chunk.path for chunk in found.chunks] == ["README.md"]
        assert "hush" not in "".join(message.text for message in stage.model.requests[-1].messages)
        assert "outside what this task may read" in stage.model.requests[1].messages[-1].text
        assert "Make the answer right" in retriever.queries[0]


async def test_the_first_prompt_holds_notes_and_skills(tmp_path: Path) -> None:
    skilled = replace(task(), applicable_skills=("care",))
    skills: Mapping[str, str] = {"care": "Be careful."}
    async with a_stage(tmp_path, [FINISH], tasks=(skilled,), approvals=OPEN, skills=skills) as stage:
        await stage.ports.memory.write_scratchpad(T1, "", "- the user knows\n")
        stage.model.sayings.extend([reflexion(), LOOK] * 20)
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda _: stage.model.requests)
            text = stage.model.requests[0].messages[-1].text
            assert text.startswith("Skill care (a way of working; it permits nothing):\nBe careful.\n\nTask T-1:")
            assert "The task's scratchpad:\n- the user knows" in text
        assert [event.by for event in stage.events if isinstance(event, ScratchpadChanged)] == ["workbench"]


async def test_tests_that_the_model_asks_for_wait_at_their_gate(tmp_path: Path) -> None:
    settings = Settings(lint_command="echo lint")
    sayings = [call("run_tests"), call("static_analyze"), change("wrong", "right")]
    async with (
        a_stage(tmp_path, sayings, settings=settings) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.CHECK)
        await front.gate(Permission.CHECK)
        assert stage.state.run is not None
        mine = Path(stage.state.run.workspace.path, "mine.txt")
        mine.write_text("by hand\n")
        assert (await front.approve(Permission.CHECK)).commands == ("grep -q right answer.txt",)
        assert (await front.approve(Permission.CHECK)).commands == ("echo lint",)
        await front.gate(Permission.DIFF)
        assert not mine.exists(), "checks leave the files as they were approved"
        (kept,) = [event.checkpoint.commit for event in stage.events if isinstance(event, CheckpointTaken)]
        assert stage.git("show", f"{kept}:mine.txt") == "by hand"
        assert "All checks passed." in stage.model.requests[-1].messages[-1].text


async def test_a_command_is_bounded_in_time(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(command_seconds=0.3))
    slow = task(accept=("echo asked; sleep 1000",))
    async with (
        a_stage(tmp_path, [FINISH], tasks=(slow,), settings=settings, approvals=CHECKS) as stage,
        in_front_of(stage) as front,
    ):
        stage.model.sayings.extend([reflexion(), LOOK] * 20)
        await front.start()
        await front.until(lambda _: stage.model.requests)
        told = stage.model.requests[0].messages[-1].text
        assert "did not end\nasked" in told
        assert "asked\ntimed out" in told


async def test_a_denied_word_stops_a_command(tmp_path: Path) -> None:
    careful = replace(task(), constraints=replace(task().constraints, denylisted_commands=("curl",)))
    settings = Settings(tools_allowed=("run_command", "write_diff"))
    sayings = [call("run_command", '{"command": "curl example.org"}'), change("wrong", "right")]
    async with (
        a_stage(tmp_path, sayings, tasks=(careful,), settings=settings, approvals=CHECKS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        assert "does not allow 'curl'" in stage.model.requests[-1].messages[-1].text


DENIED = replace(task(), constraints=Constraints(denylisted_commands=("make *",)))


async def test_a_task_whose_checks_it_denies_is_not_started_and_says_so(tmp_path: Path) -> None:
    settings = Settings(lint_command="cd . && make lint")
    async with a_stage(tmp_path, tasks=(DENIED,), settings=settings) as stage, in_front_of(stage) as front:
        notice = await front.notice(StartTask(T1))
        assert (
            "the checks of T-1 cannot be run: this task does not allow 'make *' in a command: cd . && make lint"
            in notice
        )
        assert stage.state.run is None
        assert stage.shell.lines == []


async def test_unattended_a_task_whose_checks_it_denies_is_blocked(tmp_path: Path) -> None:
    settings = Settings(test_command="make test")
    tasks = (DENIED, task("T-2"))
    sayings = [change("wrong", "right"), FINISH]
    async with a_stage(
        tmp_path, sayings, tasks=(DENIED, task("T-2")), settings=settings, approvals=OPEN, headless=True
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, None)
        blocked = [each for each in stage.events if isinstance(each, TaskStatusChanged) and each.task == tasks[0].id]
        assert "does not allow 'make *'" in blocked[0].reason, ending


async def test_a_session_of_before_does_not_run_what_its_task_denies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checks were recorded when patterns did not count for them."""
    async with a_stage(tmp_path, tasks=(DENIED,), approvals=CHECKS) as stage, in_front_of(stage) as front:
        recorded = stage.recorder.record

        async def with_denied_check(event: Event) -> None:
            await recorded(replace(event, checks=("make test",)) if isinstance(event, TaskStarted) else event)

        monkeypatch.setattr(stage.recorder, "record", with_denied_check)
        await front.start()
        trouble = (await front.trouble()).state.trouble
        assert trouble is not None
        assert "does not allow 'make *' in a command: make test" in trouble.what


async def test_a_commit_that_cannot_be_made_is_trouble_and_can_be_retried(tmp_path: Path) -> None:
    approvals = Approvals(check=Approval.AUTO, diff=Approval.AUTO)
    async with (
        a_stage(tmp_path, [change("wrong", "right"), FINISH], approvals=approvals) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.COMMIT)
        head = stage.user.head()
        stage.git("commit", "--quiet", "--allow-empty", "-m", "mine")
        stage.git("update-ref", "refs/heads/agent/T-1", "HEAD")
        await front.approve(Permission.COMMIT)
        trouble = (await front.trouble()).state.trouble
        assert trouble is not None
        assert trouble.source == COMMIT
        assert "agent/T-1" in trouble.what
        stage.git("update-ref", "refs/heads/agent/T-1", head)
        await front.submit(RetryTrouble())
        await front.approve(Permission.COMMIT)
        await front.skip(Permission.MERGE)
        await front.over()
        assert stage.git("show", "agent/T-1:answer.txt") == "right"


async def test_a_commit_whose_outcome_is_unknown_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approvals = Approvals(check=Approval.AUTO, diff=Approval.AUTO)
    async with a_stage(tmp_path, [change("wrong", "right"), FINISH], approvals=approvals) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.COMMIT)
            record = stage.recorder.record

            async def killed(event: object) -> None:
                if isinstance(event, TaskCommitted | TaskRolledBack):
                    raise ModelUnavailable("as if the process had died here")
                await record(event)  # type: ignore[arg-type] # only events come here

            monkeypatch.setattr(stage.recorder, "record", killed)
            await front.approve(Permission.COMMIT)
            await front.trouble()
            assert stage.git("show", "agent/T-1:answer.txt") == "right"
            monkeypatch.setattr(stage.recorder, "record", record)
        async with reopened(stage) as again, in_front_of(again) as front:
            await front.approve(Permission.COMMIT)
            await front.skip(Permission.MERGE)
            await front.over()
            results = [event.result for event in again.events if isinstance(event, ActionFinished)]
            assert ActionResult.UNKNOWN in results
            assert stage.git("rev-list", "--count", "main..agent/T-1") == "1"


LONG = "Make the answer right in every file that has one, and say in the notes which of them had another answer before"


@pytest.mark.parametrize(
    ("description", "subject", "whole"),
    [
        (LONG, "[Agent] Complete T-1: Make the answer right in every file that has one…", True),
        ("x" * 100, f"[Agent] Complete T-1: {'x' * 49}…", True),
        ("Make it right\nand check it", "[Agent] Complete T-1: Make it right", True),
        ("Make it right", "[Agent] Complete T-1: Make it right", False),
    ],
)
async def test_a_description_that_is_no_subject_stands_whole_in_the_commit(
    tmp_path: Path, description: str, subject: str, whole: bool
) -> None:
    tasks = (replace(task(), description=description),)
    async with a_stage(
        tmp_path, [change("wrong", "right"), FINISH], tasks=tasks, approvals=OPEN, headless=True
    ) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        told = stage.git("log", "-1", "--format=%B", "agent/T-1").split("\n\n")
    assert told[0] == subject
    assert len(subject) <= 72
    assert (told[1] == description) is whole
    assert told[-2] == "the answer is right"
