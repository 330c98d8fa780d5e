"""The ten questions of `agent model test`, and the judgement of their answers."""

import re
from collections.abc import Callable

from msgspec import Struct

from agent_workbench.core.diagnostics.model_trials import QuestionKind
from agent_workbench.core.errors import PatchError, PlanError
from agent_workbench.core.events import PlanSurveyed
from agent_workbench.core.model import Message, Purpose, Role
from agent_workbench.core.patch.fit import fit_diff
from agent_workbench.core.patch.grammar.diff_grammar import EditScope, diff_rules
from agent_workbench.core.patch.grammar.hunk_rules import editable, text_lines
from agent_workbench.core.patch.reader.patch_reader import read_diff
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.core.plan import Plan
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import DEFAULT_TOOLS
from agent_workbench.core.state.planning import Planning
from agent_workbench.core.tools.spec import ToolSpec, by_name
from agent_workbench.engine.answer.grammar import reflexion_grammar, step_grammar
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, read_step
from agent_workbench.engine.planning.plan_answer import GRAMMAR, read_tasks
from agent_workbench.engine.planning.plan_prompt import VERSION, planner_messages
from agent_workbench.engine.prompt.prompt_text import rules
from agent_workbench.engine.prompt.reflexion import QUESTION
from agent_workbench.engine.tools.registry import builtin_specs

PATH = "calc.py"
CODE = '''def add(first, second):
    """Return the sum."""
    return first - second


def mean(values):
    """Return the average."""
    return sum(values) / len(values)
'''
FILES = ("README.md", PATH, "docs/usage.md", "test_calc.py")
_BOUNDS = PatchBounds()
_REFLEXION = "Reflexion:"
_PLANNED = {"mean", "median", "average", "empty", "values", "tests"}
_INTRODUCTION = f"""\
These are exercises: nothing is carried out. Take one step for each. The repository holds {", ".join(FILES)}.

{PATH} now reads:
{CODE}
Exercise 1: show the file test_calc.py."""


class Judgement(Struct, frozen=True):
    """Judgement of an answer: it has the form (`valid`), follows its grammar exactly (`kept`), and is `right`.

    `why` describes the problem.
    """

    valid: bool
    kept: bool
    right: bool
    why: str = ""


class Question(Struct, frozen=True):
    """One question of the test. Questions with a `word` share a conversation; the plan has one of its own."""

    name: str
    kind: QuestionKind
    word: str
    judge: Callable[[str], Judgement]


def questions() -> tuple[Question, ...]:
    """Return the ten questions in their order."""
    return (
        _call("read a file", _INTRODUCTION, "read_file", "test_calc.py"),
        _call("list files", "Observation: it is empty.\n\nExercise 2: list all files in docs.", "list_files", "docs"),
        _call(
            "find a text", "Observation: docs/usage.md\n\nExercise 3: find the text TODO in all files.", "grep", "TODO"
        ),
        _diff(
            "correct a line",
            f"Observation: nothing found.\n\nExercise 4: add subtracts; correct that in {PATH} with a diff.",
            CODE.replace("first - second", "first + second"),
        ),
        _call("run the tests", "Observation: applied.\n\nExercise 5: run the tests.", "run_tests", ""),
        _call("keep a note", "Observation: 3 passed.\n\nExercise 6: note the word BANANA.", "note", "BANANA"),
        _diff(
            "rename a name",
            f"Observation: noted.\n\nExercise 7: {PATH} stands again as it was at first. In mean, name the parameter"
            " numbers in place of values, with a diff.",
            CODE.replace("(values)", "(numbers)"),
        ),
        _call("finish", "Observation: applied.\n\nExercise 8: all is done; say so and finish.", "finish", ""),
        Question(
            "say what was wrong",
            QuestionKind.REFLEXION,
            f"Observation: 1 failed: test_mean: ZeroDivisionError in mean([]).\n\n{QUESTION}",
            _judge_reflexion,
        ),
        Question("plan tasks", QuestionKind.PLAN, "", _judge_plan),
    )


def opening() -> Message:
    """Return the first message of the conversation: the rules that every task begins with."""
    return Message(Role.SYSTEM, rules(_tools().values()))


def plan_messages() -> tuple[Message, ...]:
    """Return the messages that ask for a plan."""
    goal = "mean of no values is 0, and there is a median beside it; both are tested"
    code = Chunk(PATH, 1, CODE.count("\n"), CODE, 1.0)
    survey = PlanSurveyed(code=(code,), commands=("pytest -q",), files=FILES)
    return planner_messages(Planning(goal, VERSION, survey=survey), Plan())


def grammars() -> dict[Purpose, str]:
    """Return the grammar of each purpose; the grammar of a step is made for the file in the questions."""
    lines = text_lines(FileContent(CODE.encode()))
    files = () if lines is None else (editable(PATH, lines, range(len(lines))),)
    step = step_grammar(_tools().values(), diff_rules(EditScope(files, FILES, _BOUNDS)))
    return {Purpose.EXECUTOR: step, Purpose.REFLEXION: reflexion_grammar(), Purpose.PLANNER: GRAMMAR}


def purpose_of(question: Question) -> Purpose:
    """Return the purpose of an answer to the question."""
    match question.kind:
        case QuestionKind.REFLEXION:
            return Purpose.REFLEXION
        case QuestionKind.PLAN:
            return Purpose.PLANNER
        case _:
            return Purpose.EXECUTOR


def _tools() -> dict[str, ToolSpec]:
    return by_name(builtin_specs(DEFAULT_TOOLS))


def _call(name: str, word: str, tool: str, said: str) -> Question:
    def judge(answer: str) -> Judgement:
        step = read_step(answer, _tools())
        if isinstance(step, StepFault):
            return Judgement(valid=False, kept=False, right=False, why=step.reason)
        right = step.tool.name == tool and said in step.text
        wanted = f"{tool} with {said!r}" if said else tool
        why = "" if right else f"{step.tool.name} {step.text.strip()[:60]} in place of {wanted}"
        return Judgement(_fits(step) == "", not step.mended, right, _fits(step) or why)

    return Question(name, QuestionKind.CALL, word, judge)


def _diff(name: str, word: str, wanted: str) -> Question:
    def judge(answer: str) -> Judgement:
        step = read_step(answer, _tools())
        if isinstance(step, StepFault):
            return Judgement(valid=False, kept=False, right=False, why=step.reason)
        if not step.tool.raw:
            return Judgement(valid=True, kept=not step.mended, right=False, why=f"{step.tool.name} in place of a diff")
        if fault := _fits(step):
            return Judgement(valid=False, kept=not step.mended, right=False, why=fault)
        right = _lines(_after(step.text)) == _lines(wanted)
        why = "" if right else "the diff applies, and is not what was asked for"
        return Judgement(valid=True, kept=not step.mended, right=right, why=why)

    return Question(name, QuestionKind.DIFF, word, judge)


def _fits(step: StepCall) -> str:
    """Return the reason why a diff does not apply, empty if it does and for any other call."""
    if not step.tool.raw:
        return ""
    try:
        _after(step.text)
    except PatchError as error:
        return f"{step.tool.name}: {error}"
    return ""


def _after(diff: str) -> str:
    """Return the file after the diff; raise `PatchError`."""
    content = FileContent(CODE.encode())
    read = read_diff(diff, _BOUNDS, FILES)
    there = {path: content if path == PATH else FileContent(b"") if path in FILES else None for path in read.paths}
    changes = {change.path: change.after for change in fit_diff(read, there, FILES).changes}
    after = changes.get(PATH, content)
    return after.data.decode("utf-8", "replace") if after else ""


def _lines(text: str) -> list[str]:
    """Return the lines without trailing white space."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _judge_reflexion(answer: str) -> Judgement:
    text = answer.strip()
    kept = text.startswith(f"{_REFLEXION} ") and "\n" not in text
    said = text.removeprefix(_REFLEXION).strip()
    valid = bool(said) and not said.startswith(("Thought:", "Action:"))
    about = any(word in said.lower() for word in ("empty", "zero", "no values", "len(", "division", "divid"))
    why = "" if valid and about else "it does not say what failed" if valid else f"no reflexion: {said[:60]!r}"
    return Judgement(valid, kept, valid and about, why)


def _judge_plan(answer: str) -> Judgement:
    try:
        tasks = read_tasks(answer, Plan())
    except PlanError as error:
        return Judgement(valid=False, kept=False, right=False, why=str(error))
    words = [set(re.findall(r"[a-z]+", f"{task.description} {task.goal}".lower())) for task in tasks]
    right = all(_PLANNED & said for said in words) and any("median" in said for said in words)
    return Judgement(valid=True, kept=True, right=right, why="" if right else "tasks that are not for the goal")
