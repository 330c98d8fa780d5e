"""A long session as it is lived: diffs, decisions, checks, reflexions, words of the user, commits."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.proposal_kinds import CheckProposal, DiffProposal, ReadProposal
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.repo.workspace import WorkspaceFacts

BASE = CommitId("9e107d9d372bb6826bd81d3542a419d6e2f7a1c0")
COMMAND = "python -m pytest -q tests"
BEGAN = datetime.fromisoformat("2026-11-20T10:15:00+00:00")
SECONDS_APART = 3
URL = "http://127.0.0.1:8080"


def long_session(events: int, tasks: int = 1) -> tuple[e.Recorded, ...]:
    """Return so many events of one session, its steps shared out among `tasks` tasks, an event every few seconds."""
    return tuple(story_of(events, tasks))


def story_of(events: int, tasks: int = 1) -> Iterator[e.Recorded]:
    """Yield the same events one by one."""
    for seq, event in enumerate(islice(_story(events, tasks), events)):
        yield e.Recorded(seq, _time(seq), event, f"{seq:064x}")


def _time(seq: int) -> str:
    return (BEGAN + timedelta(seconds=SECONDS_APART * seq)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _story(events: int, tasks: int) -> Iterator[e.Event]:
    names = [TaskId(f"T-{number}") for number in range(1, tasks + 1)]
    plan = Plan(tuple(Task(name, f"Mend part {name} of the shop") for name in names))
    yield e.SessionStarted(SessionId("20261120T101500-ab2cde"), "/home/mia/shop", BASE, "0.1.0")
    yield e.ModelObserved(ModelFacts(URL, "coder-7b.gguf", 32_768))
    yield e.PlanRead("memory/plans/PLAN.yaml", plan)
    done = 3
    for number, name in enumerate(names, 1):
        step = 0
        for event in _opening(name, plan):
            yield event
            done += 1
        while done < events * number / tasks - 8:
            step += 1
            for event in _step(step, name):
                yield event
                done += 1
        for event in _closing(name):
            yield event
            done += 1
    while True:
        yield e.SessionLeft("left by the user")


def _opening(task: TaskId, plan: Plan) -> Iterator[e.Event]:
    facts = WorkspaceFacts(f"/worktrees/{task}", f"agent/{task}", BASE, "tree-0")
    yield e.TaskStatusChanged(task, TaskStatus.IN_PROGRESS)
    yield e.TaskStarted(task, plan.task(task), facts, (COMMAND,), ("read_file", "write_diff", "finish"), 1)
    chunks = tuple(
        Chunk(f"shop/part_{number}.py", 10, 18, _code(number), 0.9 - number / 20, f"part_{number}", ("part",), 90)
        for number in range(8)
    )
    yield e.CodeRetrieved("mend the part", chunks)


def _step(step: int, task: TaskId) -> Iterator[e.Event]:
    if step % 3 == 0:
        yield from _read(step, task)
    else:
        yield from _write(step, task)
    if step % 12 == 0:
        yield e.UserSaid(f"part {step}: prices stay whole cents")
    if step % 15 == 0:
        yield e.ScratchpadChanged(
            task, f"# {task}\n\n- cents are whole\n- part {step} was mended\n" * 3, e.Author.MODEL
        )


def _read(step: int, task: TaskId) -> Iterator[e.Event]:
    path = f"shop/part_{step % 40}.py"
    read = ReadProposal(ProposalId(f"{task}-P-{step}"), "read_file", f'{{"path": "{path}"}}', step)
    yield from _answer(step, f'Thought: I look at {path} first.\nAction: read_file\n{{"path": "{path}"}}')
    yield from _approved(read, "policy:read=auto")
    shown = (Chunk(path, 1, 40, _code(step) * 4, 0.0, tokens=400),)
    yield e.ActionFinished(read.id, e.ActionResult.OK, f"{path}\n" + _code(step) * 4, 0.01, shown=shown)


def _write(step: int, task: TaskId) -> Iterator[e.Event]:
    path = f"shop/part_{step % 40}.py"
    diff = _diff(path, step)
    wrote = DiffProposal(ProposalId(f"{task}-P-{step}"), "write_diff", diff, step, diff=diff, paths=(path,))
    yield from _answer(
        step, f"Thought: The quantity of part {step} is never used, so I add it.\nAction: write_diff\n{diff}"
    )
    if step % 17 == 0:
        yield e.ActionProposed(wrote)
        yield e.ActionDecided(wrote.id, Verdict.REJECT, "user", "the rounding is wrong")
        return
    yield from _approved(wrote, "user")
    yield e.PatchApplied(
        wrote.id, (path,), "0" * 64, f"tree-{step}", (Chunk(path, 10, 18, _code(step), 0.0, tokens=90),)
    )
    yield e.ActionFinished(wrote.id, e.ActionResult.OK, f"Applied to {path}.\n" + _code(step))
    checks = CheckProposal(
        ProposalId(f"{task}-C-{step}"),
        "checks",
        "",
        step,
        commands=(COMMAND,),
        purpose=CheckPurpose.AFTER_DIFF,
    )
    good = step % 4 != 1
    yield from _approved(checks, "policy:check=auto")
    failed = () if good else (f"tests/test_part.py::test_part_{step}",)
    result = CheckResult(COMMAND, 0 if good else 1, _output(step, good=good), 2.5, failed)
    yield e.TestsFinished(CheckPurpose.AFTER_DIFF, (result,))
    yield e.ActionFinished(
        checks.id, e.ActionResult.OK, "All checks passed." if good else _output(step, good=good), 2.5
    )
    if not good:
        text = f"I added the quantity of part {step} where it had to be multiplied."
        yield from _answer(step, f"Reflexion: {text}", Purpose.REFLEXION)
        yield e.ReflexionNoted(step, text)


def _answer(step: int, text: str, purpose: Purpose = Purpose.EXECUTOR) -> Iterator[e.Event]:
    tokens = 2_000 + 240 * (step % 100)
    parts = (e.PromptPart("answer", 64), e.PromptPart("observation", 176))
    yield e.PromptBuilt(step, purpose, 2 + step, tokens, "0" * 64, parts)
    yield e.ModelAnswered(step, text, AnswerFigures(tokens, tokens - 240, 64, 0.4, 1.6), URL)


def _approved(proposal: Proposal, by: str) -> Iterator[e.Event]:
    yield e.ActionProposed(proposal)
    yield e.ActionDecided(proposal.id, Verdict.APPROVE, by)
    yield e.ActionStarted(proposal.id)


def _closing(task: TaskId) -> Iterator[e.Event]:
    yield e.TaskCommitted(task, BASE, f"agent/{task}", f"[Agent] Complete {task}: mended")
    yield e.TaskStatusChanged(task, TaskStatus.DONE)
    yield e.TaskFinished(task, TaskStatus.DONE, "committed")


def _code(number: int) -> str:
    body = "".join(f"    total += line_{each}.cents * line_{each}.quantity  # part {number}\n" for each in range(6))
    return f"def part_{number}(lines):\n    total = 0\n{body}    return total\n"


def _diff(path: str, step: int) -> str:
    lines = "".join(f"-    total += line_{each}.cents\n+    total += line_{each}.cents + {step}\n" for each in range(8))
    return f"--- a/{path}\n+++ b/{path}\n@@ -10,10 +10,10 @@\n def part(lines):\n     total = 0\n{lines}"


def _output(step: int, *, good: bool) -> str:
    passed = "".join(f"tests/test_part.py::test_{each} PASSED\n" for each in range(40))
    if good:
        return f"{passed}40 passed in 2.41s"
    failed = f"E   AssertionError: assert {step} == 810\nFAILED tests/test_part.py::test_part_{step}\n"
    return f"{passed}{failed}1 failed, 40 passed in 2.41s"
