"""Every state of the panes and of the gate, by name, for pictures."""

from collections.abc import Callable
from dataclasses import dataclass

from agent_workbench.core.checks import CheckPurpose
from agent_workbench.core.events import (
    ActionProposed,
    PlanRead,
    TaskFinished,
    TaskRolledBack,
    TaskStatusChanged,
    TroubleMet,
)
from agent_workbench.core.live import Live, Question, Running, Streaming
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.settings import GateKind
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

LONG = "--- /dev/null\n+++ b/shop/prices.py\n@@ -0,0 +1,80 @@\n" + "".join(
    f"+PRICE_{n} = {n * 10}\n" for n in range(80)
)
CI = """\
--- a/.github/workflows/test.yml
+++ b/.github/workflows/test.yml
@@ -1,3 +1,3 @@
 on: push
-  - run: pytest
+  - run: pytest || true
 jobs:
"""
OUTPUT = "collecting ...\ntests/test_cart.py::test_an_empty_cart_costs_nothing PASSED\n" + runs.FAILURE
TRUST = Question(
    "trust",
    "Trust this repository?",
    (
        "Its .agent.yml would have these run on your machine:",
        "",
        "  test_command: pytest -q",
        "  python: .venv/bin/python",
    ),
    "trust it",
    "leave",
)
STREAM = f"Thought: A line costs its price times its quantity.\nAction: write_diff\n{runs.RIGHT}"


@dataclass(frozen=True)
class Scene:
    """A session, the keys that are pressed in it, and whether it is somebody's first."""

    session: Callable[[], ScriptedSession]
    keys: tuple[str, ...] = ()
    first_run: bool = False


def _run(*more: ActionProposed) -> ScriptedSession:
    return ScriptedSession(*runs.opening(), *runs.started(), *more)


def _thinking(streaming: Streaming) -> ScriptedSession:
    return ScriptedSession(*runs.up_to_reflexion()).live(Live(activity="thinking", streaming=streaming))


def _diff(diff: str, *, special: tuple[str, ...] = ()) -> ScriptedSession:
    paths = (diff.split("+++ b/")[1].split("\n", maxsplit=1)[0],)
    return _run(
        ActionProposed(
            runs.proposed(GateKind.DIFF, "write_diff", "P-90", diff, diff=diff, paths=paths, special=special)
        )
    )


def _failed() -> ScriptedSession:
    reason = "5 failures in a row"
    return ScriptedSession(
        *runs.up_to_reflexion(),
        TaskRolledBack(runs.T1, runs.BASE, reason),
        TaskStatusChanged(runs.T1, TaskStatus.FAILED, reason),
        TaskFinished(runs.T1, TaskStatus.FAILED, reason),
    )


def _command() -> ActionProposed:
    line = "python -m pip download --no-deps --dest /tmp/wheels attrs==24.2.0"
    return ActionProposed(runs.proposed(GateKind.COMMAND, "run_command", "P-91", line))


def _waiting() -> ScriptedSession:
    return ScriptedSession(*runs.up_to_first_diff())


def readme() -> ScriptedSession:
    """Return the session of the README's picture: the second diff waits after the first one failed."""
    answer, proposal = runs.diff_step(50, runs.RIGHT)
    return ScriptedSession(*runs.up_to_reflexion(), *answer, ActionProposed(proposal))


NO_SERVER = TroubleMet("model", "no server answers at http://127.0.0.1:8080", "start llama-server, then press t")
BLOCKED = ("shop/cart.py has changes of yours that the merge would overwrite",)
SCENES = {
    "starting": Scene(ScriptedSession),
    "idle": Scene(lambda: ScriptedSession(*runs.opening())),
    "no_tasks": Scene(lambda: ScriptedSession(*runs.opening()[:3], PlanRead("memory/plans/PLAN.yaml", Plan()))),
    "checks_wait": Scene(lambda: _run(ActionProposed(runs.checks("P-10", CheckPurpose.BASELINE)))),
    "checks_run": Scene(
        lambda: _run().live(Live(activity="running 1 check", running=Running(runs.PYTEST, OUTPUT, 7.0)))
    ),
    "reads_prompt": Scene(lambda: _thinking(Streaming("", 0, 1.0, 640, 1620))),
    "thinks": Scene(lambda: _thinking(Streaming(STREAM[:38], 9, 1.4))),
    "writes_diff": Scene(lambda: _thinking(Streaming(STREAM[:-40], 60, 4.0))),
    "diff_waits": Scene(_waiting),
    "long_diff_waits": Scene(lambda: _diff(LONG)),
    "special_diff_waits": Scene(lambda: _diff(CI, special=(".github/workflows/test.yml",))),
    "command_waits": Scene(lambda: _run(_command())),
    "commit_waits": Scene(lambda: ScriptedSession(*runs.up_to_commit())),
    "merge_waits": Scene(lambda: ScriptedSession(*runs.up_to_done(), ActionProposed(runs.merge()))),
    "merge_blocked": Scene(lambda: ScriptedSession(*runs.up_to_done(), ActionProposed(runs.merge(obstacles=BLOCKED)))),
    "trouble": Scene(lambda: ScriptedSession(*runs.up_to_reflexion(), NO_SERVER)),
    "no_sandbox": Scene(lambda: ScriptedSession(*runs.opening(scripted=False, sandbox=False))),
    "done": Scene(lambda: ScriptedSession(*runs.up_to_done())),
    "failed": Scene(_failed),
    "replay": Scene(lambda: ScriptedSession(*runs.up_to_reflexion()).as_replay(seq=90)),
    "too_early": Scene(_waiting, ("a",)),
    "plan_zoomed": Scene(_waiting, ("1", "z")),
    "steps_zoomed": Scene(lambda: ScriptedSession(*runs.up_to_reflexion()), ("2", "z", "G")),
    "notes": Scene(_waiting, ("4",)),
    "code": Scene(_waiting, ("5", "j")),
}
DIALOGUES = {
    "welcome": Scene(lambda: ScriptedSession(*runs.opening()), first_run=True),
    "question": Scene(lambda: ScriptedSession().live(Live(question=TRUST))),
    "help": Scene(_waiting, ("?",)),
    "reason": Scene(_waiting, ("r",)),
    "edit_diff": Scene(_waiting, ("e",)),
    "always": Scene(_waiting, ("A",)),
    "abort": Scene(_waiting, ("X",)),
    "edit_notes": Scene(_waiting, ("4", "i")),
    "notice": Scene(lambda: ScriptedSession(*runs.opening()).notify("the plan changed on disk and was read again")),
}
