"""Every state of the panes and of the gate, by name, for pictures."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.core.approval_rules import RuleScope
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.consult_requests import AttemptVerdict, ConsultAttempt, EndpointTier
from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    ApprovalChanged,
    Author,
    ChunkDropped,
    ChunkPinned,
    ConsultantAnswered,
    ConsultantAsked,
    ConsultStatus,
    ContextCompacted,
    ContextFilled,
    EndpointPassed,
    Event,
    GrammarIgnored,
    ModelAnswered,
    ModelObserved,
    PauseChanged,
    PlanRead,
    PromptBuilt,
    PromptPart,
    TaskFinished,
    TaskRolledBack,
    TaskStatusChanged,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.history.past_actions import PastAction, PastActions
from agent_workbench.core.intents import (
    CompleteCode,
    DraftTask,
    EditPlan,
    Intent,
    ListModels,
    ListPastActions,
    OpenFile,
    OpenPlan,
    PreviewPrompt,
)
from agent_workbench.core.live import LeftRunning, Live, PreflightQuestion, Running, Streaming
from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.outcomes import (
    CodeCompleted,
    FileOpened,
    ModelsListed,
    Outcome,
    PastActionsFound,
    PlanOpened,
    Refused,
    TaskDrafted,
)
from agent_workbench.core.plan import PathScope, Plan, PlanPiece, Task, TaskDraft, TaskStatus
from agent_workbench.core.proposals import COMPACT, END_UNCHANGED, Verdict
from agent_workbench.core.proposed_action import SummaryEstimate
from agent_workbench.core.repo.retrieval import Completion, IndexStatus
from agent_workbench.core.settings import Permission, Rule
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
SCRIPT = (
    '{"skill_name": "calculator", "script": "from scripts.calculate import calculate, rounded\\n\\n'
    "for rate in (3, 5):\\n    print(rate, rounded(calculate('1000 * (1 + rate / 100) ** 10', rate=rate)))\\n\"}"
)
HUNKS = """\
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -14,6 +14,6 @@ class Line:
\x20
 def total(lines: list[Line]) -> int:
     \"\"\"Return the price of all lines in cents.\"\"\"
-    return sum(line.cents for line in lines)
+    return sum(line.cents * line.quantity for line in lines)
\x20
\x20
@@ -31,5 +31,7 @@ def total(lines: list[Line]) -> int:
 def discounted(cents: int, percent: int) -> int:
     \"\"\"Return the price after a discount.\"\"\"
-    return cents - percent
+    if percent > 100:
+        raise ValueError(percent)
+    return cents - cents * percent // 100
\x20
\x20
--- /dev/null
+++ b/shop/prices.py
@@ -0,0 +1,3 @@
+FIRST = 10
+SECOND = 20
+THIRD = 30
"""
OUTPUT = "collecting ...\ntests/test_cart.py::test_an_empty_cart_costs_nothing PASSED\n" + runs.FAILURE
SERVES = LeftRunning(
    "npm run dev", "VITE ready in 212 ms\n➜ http://127.0.0.1:5173/\nGET /cart 500\nTypeError: total is undefined\n"
)
TRUST = PreflightQuestion(
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
PIECE = PlanPiece(
    "memory/plans/PLAN.yaml",
    "tasks:\n- id: T-2\n  description: Give the cart a discount in percent\n",
    7,
    67,
    "- id: T-2\n  description: Give the cart a discount in percent\n",
    2,
    3,
    runs.T2,
)
DRAFT = TaskDraft(
    Task(
        runs.T3,
        "Round the total in @shop/cart.py to cents: half a cent up",
        "A new test in tests/test_cart.py shows it, and pytest -q tests/test_cart.py passes.",
        accept_tests=("pytest -q tests/test_cart.py",),
        scope=PathScope(("shop/**", "tests/**")),
    ),
    ("shop/cart.py",),
    ("@shop/tax.py is no file here, so it is not pinned",),
)
INDEXING = IndexStatus(312, 2066, 300, 4120, vectors="held by another session")
STREAM = f"Thought: A line costs its price times its quantity.\nAction: write_diff\n{runs.RIGHT}"


class Scene(Struct, frozen=True):
    """A session, the keys that are pressed in it, whether it is somebody's first, and was `looked` at for a moment."""

    session: Callable[[], ScriptedSession]
    keys: tuple[str, ...] = ()
    first_run: bool = False
    looked: bool = False


def _run(*more: ActionProposed) -> ScriptedSession:
    return ScriptedSession(*runs.opening(), *runs.started(), *more)


def _thinking(streaming: Streaming) -> ScriptedSession:
    asked = PromptBuilt(3, Purpose.EXECUTOR, 6, 1620, "0" * 64, (PromptPart("observation", 96),))
    return ScriptedSession(*runs.up_to_reflexion(), asked).show(Live(activity="thinking", streaming=streaming))


def _diff(diff: str, *, special: tuple[str, ...] = ()) -> ScriptedSession:
    paths = (diff.split("+++ b/")[1].split("\n", maxsplit=1)[0],)
    return _run(
        ActionProposed(
            runs.proposed(Permission.DIFF, "write_diff", "P-90", diff, diff=diff, paths=paths, special=special)
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


def _command(line: str = "python -m pip download --no-deps --dest /tmp/wheels attrs==24.2.0") -> ActionProposed:
    return ActionProposed(runs.proposed(Permission.COMMAND, "run_command", "P-91", line))


def _script() -> ActionProposed:
    return ActionProposed(
        runs.proposed(Permission.SCRIPT, "run_python_script", "P-60", SCRIPT, source="skill", spec="0" * 16)
    )


def _waiting() -> ScriptedSession:
    return ScriptedSession(*runs.up_to_first_diff())


def readme() -> ScriptedSession:
    """Return the session of the README's picture: a diff of Qwen2.5-Coder 1.5B waits, as it was recorded."""
    return ScriptedSession(*(each.event for each in read_journal(README_SESSION).events))


README_SESSION = Path(__file__).parent / "readme_session"
NO_PLAN = "there is no memory/plans/PLAN.yaml"
NO_SERVER = TroubleMet("model", "no server answers at http://127.0.0.1:8080", "start llama-server, then press t")
REVIEW = """\
I read the diff with the whole file.

CRITICAL shop/cart.py:17 - the sum still forgets the quantity: three pens cost as much as one.

SUGGESTION name the loop variable after what it is, such as `line`.

1 critical, 0 warnings, 1 suggestions"""
BLOCKED = ("shop/cart.py has changes of yours that the merge would overwrite",)
SUMMARY = (
    "total() in shop/cart.py adds up cents and ignored quantity. Adding the quantity was wrong: three pens cost 360, "
    "not 123; the test says so.\n\n"
    "Tried: cents + quantity (failed). To do: cents * quantity, then all tests.\n"
    "Prices are whole cents; nothing outside shop/ and tests/ may be written."
)
THOUGHT = (
    "The test wants 810. Three pens at 120 are 360, one pad at 450 is 450.\n"
    "So each line is cents times quantity, and the sum of these is 810.\n"
    "Adding the quantity gave 574, that was the mistake of the first diff."
)


def _advised() -> ScriptedSession:
    """Return a session whose waiting diff was reviewed."""
    attempt = ConsultAttempt("model", "tiny", EndpointTier.LOCAL, 1200, warm_start=True, verdict=AttemptVerdict.ACCEPT)
    asked = ConsultantAsked(1, "review", "review", "phase: review", "p", "d", paths=("shop/cart.py",))
    answered = ConsultantAnswered(1, ConsultStatus.OK, REVIEW, "tiny", 1200, (attempt,))
    return ScriptedSession(*runs.up_to_first_diff(), asked, answered)


def _summary() -> ScriptedSession:
    outlook = SummaryEstimate(15_900, 6_210, 30)
    summary = runs.proposed(Permission.SUMMARY, COMPACT, "P-92", SUMMARY, outlook=outlook)
    filled = ContextFilled(3, Purpose.EXECUTOR, 15_900, 16_384)
    return ScriptedSession(*runs.up_to_reflexion(), filled, ActionProposed(summary))


def _finish() -> ScriptedSession:
    reason = "total() counts quantities since the last release; its test passes, so I changed nothing."
    answer = f'Thought: Nothing is to be done.\nAction: finish\n{{"summary": "{reason}"}}'
    call = runs.proposed(Permission.READ, "finish", "P-92", f'{{"summary": "{reason}"}}')
    before = (*runs.opening(), *runs.started(), *runs.tested("P-10", CheckPurpose.BASELINE, good=True))
    return ScriptedSession(
        *(*before, *runs.retrieved(), *runs.read_step(), *runs.answered(2, answer)),
        ActionRejected(2, "finish: nothing is changed", empty_finish=True),
        *(*runs.answered(3, answer), *runs.approved(call, "policy:read=auto")),
        ActionFinished(call.id, ActionResult.OK, "the task's checks decide whether it is done"),
        *runs.tested("P-93", CheckPurpose.FINAL, good=True),
        ActionProposed(runs.proposed(Permission.FINISH, END_UNCHANGED, "P-94", reason)),
    )


def _summed_up() -> ScriptedSession:
    pinned = runs.retrieved()[0].chunks[0]
    return ScriptedSession(
        *runs.up_to_reflexion(),
        ChunkPinned(pinned),
        ContextFilled(3, Purpose.EXECUTOR, 15_900, 16_384),
        ContextCompacted(3, SUMMARY, Author.MODEL, 40, pinned=(pinned,), diff=runs.WRONG, failing=runs.FAILURE),
        ChunkDropped("tests/test_cart.py:12-13"),
        UserSaid("the rounding is right as it is:\nonly the quantity is missing"),
    )


def receipts() -> tuple[Event, ...]:
    """Return a session whose newest prompt holds what older steps brought."""
    parts = (PromptPart("answer", 64), PromptPart("observation", 1210), PromptPart("user", 24))
    asked = PromptBuilt(3, Purpose.EXECUTOR, 6, 2690, "0" * 64, parts, seed=41)
    figures = AnswerFigures(2690, 1420, 71, 0.8, 1.7)
    return *runs.up_to_first_diff(), asked, ModelAnswered(3, "Thought: so", figures, "http://127.0.0.1:8080")


def _marked() -> ScriptedSession:
    return ScriptedSession(*runs.up_to_first_diff(), *_marked_events())


def _marked_events() -> tuple[Event, ...]:
    pinned, dropped = runs.retrieved()[0].chunks
    return ChunkPinned(pinned), ChunkDropped(dropped.place)


def _roles() -> ScriptedSession:
    slow, other = "http://gpu.lan:8080", "https://models.example/v1"
    lacks = ModelFacts(
        slow, "qwen-30b.gguf", 32_768, thinks=True, off=("no cache figures: nobody can say what was read again",)
    )
    step = ModelAnswered(
        1,
        "Thought: The cart first.\nAction: read_file\n{}",
        AnswerFigures(1400, 0, 81, 2.0, 3.1, 0.0031),
        other,
        "glm-air",
        THOUGHT,
    )
    return ScriptedSession(
        *runs.opening()[:2],
        ModelObserved(lacks),
        *runs.opening()[3:],
        *runs.started(),
        EndpointPassed(Purpose.EXECUTOR, slow, "it is loading its model for more than 60 s"),
        PromptBuilt(1, Purpose.EXECUTOR, 3, 1400, "0" * 64, (PromptPart("task", 210),)),
        step,
        GrammarIgnored(other, 1, "“Sure! Here is” is no step"),
    )


def _repaired() -> ScriptedSession:
    mended = ("hunk 1: the header said line 3, its lines stand at 14", "the final newline was missing")
    proposal = runs.proposed(
        Permission.DIFF, "write_diff", "P-93", runs.RIGHT, diff=runs.RIGHT, paths=("shop/cart.py",), repaired=mended
    )
    return _run(ActionProposed(proposal))


SCENES = {
    "starting": Scene(ScriptedSession),
    "chat": Scene(lambda: ScriptedSession(*runs.opening(), *runs.chat()), ("2", "G")),
    "idle": Scene(lambda: ScriptedSession(*runs.opening())),
    "no_tasks": Scene(lambda: ScriptedSession(*runs.opening()[:3], PlanRead("memory/plans/PLAN.yaml", Plan()))),
    "plan_waits": Scene(lambda: ScriptedSession(*runs.opening(), *runs.plan_proposed())),
    "checks_wait": Scene(lambda: _run(ActionProposed(runs.checks("P-10", CheckPurpose.BASELINE)))),
    "checks_run": Scene(
        lambda: _run().show(Live(activity="running 1 check", running=Running(runs.PYTEST, OUTPUT, 7.0)))
    ),
    "reads_prompt": Scene(lambda: _thinking(Streaming("", 0, 1.0, 640, 1620))),
    "thinks": Scene(lambda: _thinking(Streaming(STREAM[:38], 9, 1.4))),
    "writes_diff": Scene(lambda: _thinking(Streaming(STREAM[:-40], 60, 4.0))),
    "diff_waits": Scene(_waiting),
    "long_diff_waits": Scene(lambda: _diff(LONG)),
    "hunk_left": Scene(lambda: _diff(HUNKS), ("3", "n", "space", *"off by one", "enter")),
    "special_diff_waits": Scene(lambda: _diff(CI, special=(".github/workflows/test.yml",))),
    "command_waits": Scene(lambda: _run(_command())),
    "left_running_waits": Scene(lambda: _run(_command("npm run dev &"))),
    "left_running": Scene(lambda: ScriptedSession(*runs.up_to_reflexion()).show(Live(left_running=SERVES))),
    "script_waits": Scene(lambda: _run(_script())),
    "commit_waits": Scene(lambda: ScriptedSession(*runs.up_to_commit())),
    "merge_waits": Scene(lambda: ScriptedSession(*runs.up_to_done(), ActionProposed(runs.merge()))),
    "merge_changed": Scene(
        lambda: ScriptedSession(*runs.up_to_done(), ActionProposed(replace(runs.merge(), reviewed=())))
    ),
    "merge_blocked": Scene(lambda: ScriptedSession(*runs.up_to_done(), ActionProposed(runs.merge(obstacles=BLOCKED)))),
    "trouble": Scene(lambda: ScriptedSession(*runs.up_to_reflexion(), NO_SERVER)),
    "no_sandbox": Scene(lambda: ScriptedSession(*runs.opening(scripted=False, sandbox=False))),
    "advice": Scene(_advised, ("6", "n")),
    "done": Scene(lambda: ScriptedSession(*runs.up_to_done())),
    "failed": Scene(_failed),
    "paused": Scene(lambda: ScriptedSession(*runs.up_to_reflexion(), PauseChanged(paused=True)), ("0",)),
    "no_plan": Scene(lambda: ScriptedSession(*runs.opening()[:3]).show(Live(no_plan=NO_PLAN))),
    "replay": Scene(lambda: ScriptedSession(*runs.up_to_reflexion()).as_replay(seq=90)),
    "too_early": Scene(_waiting, ("a",)),
    "plan_zoomed": Scene(_waiting, ("1", "z")),
    "failures": Scene(lambda: ScriptedSession(*runs.up_to_failures()), ("2", "f")),
    "steps_zoomed": Scene(lambda: ScriptedSession(*runs.up_to_reflexion()), ("2", "z", "G")),
    "notes": Scene(_waiting, ("4",)),
    "code": Scene(_waiting, ("5", "j")),
    "code_expanded": Scene(_waiting, ("5", "j", "enter")),
    "code_marked": Scene(_marked, ("5", "j")),
    "code_indexing": Scene(lambda: _run().show(Live(activity="searching the code", index=INDEXING)), ("5",)),
    "code_after_summary": Scene(_summed_up, ("5", "j")),
    "thinks_first": Scene(lambda: _thinking(Streaming(tokens=60, seconds=2.0, thought=THOUGHT)), ("2",)),
    "thought": Scene(lambda: _thinking(Streaming(STREAM[:38], 69, 3.4, thought=THOUGHT)), ("2",)),
    "summary_waits": Scene(_summary),
    "finish_waits": Scene(_finish),
    "summed_up": Scene(_summed_up, ("2", "G")),
    "roles": Scene(_roles, ("2", "G")),
    "repaired_diff_waits": Scene(_repaired),
}


SERVERS = (
    FoundServer(
        *("llama-server", "http://127.0.0.1:8080"),
        (
            ListedModel("demo-2m.gguf", 16_384, ModelStatus.LOADED),
            ListedModel("qwen2.5-coder:7b", 0, ModelStatus.UNLOADED),
            ListedModel("qwen3-coder:30b", 0, ModelStatus.FAILED),
            ListedModel("glm-4.7-flash", 8_192, ModelStatus.SLEEPING),
        ),
        manages=True,
        left_out=3,
        endpoint="model",
    ),
    FoundServer("", "http://127.0.0.1:11434", problem="nothing answers at http://127.0.0.1:11434", endpoint="far"),
)


class Answering(ScriptedSession):
    """Has past actions, the text of the plan, and files to show."""

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        outcome = super().submit(intent)
        match intent:
            case ListPastActions():
                self.answer(PastActionsFound(intent.kind, PastActions(tuple(_past()), 3)))
            case OpenPlan():
                self.answer(PlanOpened(PIECE))
            case EditPlan():
                self.answer(Refused("memory/plans/PLAN.yaml:3:1: this is not YAML"))
            case PreviewPrompt():
                run = self.newest.state.run
                self.answer(runs.preview(self.newest.state.seq, *(run.dropped if run is not None else ())))
            case OpenFile():
                text = "\n".join(f"def line_{number}() -> None: ..." for number in range(1, 41))
                self.answer(FileOpened(intent.path, intent.line, text))
            case CompleteCode():
                found = (Completion("shop/cart.py"), Completion("shop/cart.py:14-17", "Cart.total"))
                self.answer(CodeCompleted(intent.prefix, found, "symbols are being indexed"))
            case DraftTask():
                self.answer(TaskDrafted(DRAFT))
            case ListModels():
                self.answer(ModelsListed(SERVERS))
            case _:
                pass
        return outcome


def _past() -> Iterator[PastAction]:
    proposal = replace(runs.diff_step(30, runs.WRONG)[1], diff="")
    for number, verdict in enumerate((Verdict.APPROVE, Verdict.APPROVE, Verdict.REJECT, Verdict.APPROVE)):
        paths = ("shop/cart.py",) if number % 2 else ("shop/prices.py", "shop/cart.py")
        yield PastAction(runs.SESSION, replace(proposal, step=9 - number, paths=paths), verdict, "user")
    yield PastAction(runs.SESSION, replace(proposal, step=1, paths=("README.md",)), Verdict.APPROVE, "user")


def _remembering() -> ScriptedSession:
    return Answering(*runs.up_to_first_diff())


def _ruled() -> ScriptedSession:
    checks, make = Rule(Permission.CHECK, any=True), Rule(Permission.COMMAND, program="make")
    diffs = Rule(Permission.DIFF, paths=("shop/**", "tests/**"))
    kept = ((checks, RuleScope.REPO), (diffs, RuleScope.SESSION), (make, RuleScope.EVERYWHERE))
    return _waiting().record(*(ApprovalChanged(rule.kind, True, rule, where) for rule, where in kept))


DIALOGUES = {
    "lines_left": Scene(
        lambda: _diff(HUNKS), ("3", "n", "j", "j", "j", "v", "j", "space", "enter", "n", "v", "j", "j")
    ),
    "result": Scene(lambda: _diff(HUNKS), ("3", "n", "space", "enter", "=")),
    "special_asked": Scene(lambda: _diff(CI, special=(".github/workflows/test.yml",)), ("a",), looked=True),
    "welcome": Scene(lambda: ScriptedSession(*runs.opening()), first_run=True),
    "question": Scene(lambda: ScriptedSession().show(Live(question=TRUST))),
    "help": Scene(_waiting, ("?",)),
    "reason": Scene(_waiting, ("r",)),
    "edit_diff": Scene(_waiting, ("e",)),
    "always": Scene(_remembering, ("A", "j", "tab")),
    "plan_text": Scene(_remembering, ("1", "j", "e")),
    "plan_fault": Scene(_remembering, ("1", "j", "e", "down", "x", "ctrl+s")),
    "file": Scene(lambda: Answering(*runs.up_to_failures()), ("2", "f", "j", "f")),
    "help_words": Scene(_waiting, ("3", "?", "slash", *"hunk")),
    "undo": Scene(lambda: ScriptedSession(*runs.up_to_commit()), ("u",)),
    "rules": Scene(_ruled, ("L",)),
    "models": Scene(lambda: Answering(*receipts()), ("O", "j")),
    "abort": Scene(_waiting, ("X",)),
    "edit_notes": Scene(_waiting, ("4", "i")),
    "say": Scene(_waiting, (":", *"the rounding is right")),
    "line": Scene(lambda: Answering(*runs.opening()), (":", *"round it in @car")),
    "line_commands": Scene(lambda: Answering(*runs.opening()), (":", *"/re", "down")),
    "task_draft": Scene(lambda: Answering(*runs.opening()), (":", *"round it", "enter")),
    "piece": Scene(_marked, ("5", "j", "o")),
    "find": Scene(_waiting, ("5", "plus", *"cart totals")),
    "receipt": Scene(lambda: ScriptedSession(*receipts(), *_marked_events()), ("c", "j", "j")),
    "preview": Scene(lambda: Answering(*runs.up_to_preview(), ChunkDropped(runs.retrieved()[0].chunks[1].place))),
    "edit_summary": Scene(_summary, ("e",)),
    "search": Scene(lambda: ScriptedSession(*runs.up_to_done()).as_replay(), ("slash", *"quantity")),
    "sum_up": Scene(lambda: ScriptedSession(*receipts()), ("c", "S")),
    "review": Scene(lambda: ScriptedSession(*runs.up_to_done()), ("R", "j")),
    "notice": Scene(lambda: ScriptedSession(*runs.opening()).notify("the plan changed on disk and was read again")),
}
WIDE = {
    "side_by_side": Scene(lambda: _diff(HUNKS), ("3", "z", "j", "j", "j", "j")),
}
