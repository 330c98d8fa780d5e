"""Test of a model: ten small questions, and the judgement of form, speed, cache, grammar and seed."""

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.diagnostics import ModelReport, QuestionKind, TrialAnswer
from agent_workbench.core.errors import ModelError, ModelUnavailable, PatchError, PlanError
from agent_workbench.core.events import PlanSurveyed
from agent_workbench.core.model import (
    AnswerEnd,
    AnswerFigures,
    Message,
    ModelFacts,
    ModelRequest,
    Purpose,
    Role,
    StopCause,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.patch.diff_grammar import EditScope, diff_rules
from agent_workbench.core.patch.fit import fit_diff
from agent_workbench.core.patch.hunk_rules import editable, text_lines
from agent_workbench.core.patch.patch_reader import read_diff
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.core.plan import Plan
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.model import Model
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import DEFAULT_TOOLS
from agent_workbench.core.state.prompt_reads import PromptReads, reads_of
from agent_workbench.core.state.work import Planning
from agent_workbench.core.tools.spec import ToolSpec, by_name
from agent_workbench.engine.answer.grammar import reflexion_grammar, step_grammar
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, read_step
from agent_workbench.engine.planning.plan_answer import GRAMMAR, read_tasks
from agent_workbench.engine.planning.plan_prompt import VERSION, planner_messages
from agent_workbench.engine.prompt.attempts import QUESTION
from agent_workbench.engine.prompt.prompt_text import rules
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

SECONDS = 600.0
_ANSWER_TOKENS = 500
_SEED = 20_260_101
# No model gives this answer without the grammar.
_PROOF = 'root ::= "kept " [0-7] "-" [0-7] " by grammar"\n'
_PROOF_BEGINS, _PROOF_ENDS = "kept ", " by grammar"
_REPEATED = 2
OnProgress = Callable[[str], None]


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


async def try_model(model: Model, clock: Clock, on_progress: OnProgress, seconds: float = SECONDS) -> ModelReport:
    """Ask all questions within `seconds` and return the report; after the time it has the answers so far.

    Raises `ModelError` when nobody answers at all.
    """
    trial = _Trial(model, clock, on_progress)
    try:
        async with asyncio.timeout(seconds):
            on_progress("waiting for the model")
            trial.facts = await model.observe()
            await trial.run()
    except TimeoutError as error:
        if trial.facts is None:
            raise ModelUnavailable(
                f"the model was not ready within {seconds:g} s", advice="give it more time with --seconds"
            ) from error
        trial.stopped = f"{seconds:g} s were over"
    except ModelError as error:
        if trial.facts is None:
            raise
        trial.stopped = str(error)
    return trial.report(trial.facts)


class _Trial:
    def __init__(self, model: Model, clock: Clock, on_progress: OnProgress) -> None:
        self.facts: ModelFacts | None = None
        self._model = model
        self._clock = clock
        self._on_progress = on_progress
        self._asked: list[TrialAnswer] = []
        self._reads: PromptReads | None = None
        self._keeps: bool | None = None
        self._repeats: tuple[bool | None, bool | None] = (None, None)
        self.stopped = ""

    async def run(self) -> None:
        """Ask the ten questions, then test grammar and seed."""
        held = await asyncio.to_thread(grammars)
        messages: tuple[Message, ...] = (opening(),)
        before: AnswerFigures | None = None
        for number, question in enumerate(questions(), 1):
            self._on_progress(f"question {number} of 10: {question.name}")
            alone = question.kind is QuestionKind.PLAN
            if not alone:
                messages = (*messages, Message(Role.USER, question.word))
            request = self._request(plan_messages() if alone else messages, held[purpose_of(question)], question)
            answer = await self._ask(request, question)
            self._asked.append(answer)
            if not alone:
                before = self._count_reads(answer, before)
                messages = (*messages, Message(Role.ASSISTANT, answer.text or "…"))
        await self._try_grammar(messages[:2])
        await self._try_seed(messages[:2], held[Purpose.EXECUTOR])
        self.facts = await self._model.observe()

    def report(self, facts: ModelFacts) -> ModelReport:
        """Return the report."""
        reads = self._reads if facts.tells_cache else None
        asked = tuple(self._asked)
        return ModelReport(facts, asked, reads, self._keeps_grammar(facts), *self._repeats, self.stopped)

    def _keeps_grammar(self, facts: ModelFacts) -> bool | None:
        if not facts.takes_grammar:
            return False
        return None if self._keeps is None else self._keeps and all(each.kept for each in self._asked if each.ended)

    def _request(self, messages: tuple[Message, ...], grammar: str, question: Question) -> ModelRequest:
        takes = self.facts is not None and self.facts.takes_grammar
        return ModelRequest(
            messages=messages,
            purpose=purpose_of(question),
            grammar=grammar if takes else "",
            answer_tokens=_ANSWER_TOKENS,
            seed=_SEED + len(self._asked),
            subject="model test",
        )

    async def _ask(self, request: ModelRequest, question: Question) -> TrialAnswer:
        begun = self._clock.monotonic_seconds()
        first = 0.0
        text = thought = ""
        end: AnswerEnd | None = None
        async with aclosing(self._model.answer(request)) as items:
            async for item in items:
                first = first or (self._clock.monotonic_seconds() - begun if _is_token(item) else 0.0)
                match item:
                    case TextDelta():
                        text += item.text
                    case ThoughtDelta():
                        thought += item.text
                    case AnswerEnd():
                        end = item
        seconds = self._clock.monotonic_seconds() - begun
        ended = end is not None and end.stop is StopCause.END
        found = question.judge(text)
        return TrialAnswer(
            question.name,
            question.kind,
            ended,
            ended and found.valid,
            found.kept,
            ended and found.right,
            found.why if ended else "it was cut at the token limit",
            text,
            thought,
            seconds,
            first,
            end.figures if end else AnswerFigures(),
        )

    def _count_reads(self, answer: TrialAnswer, before: AnswerFigures | None) -> AnswerFigures | None:
        """Count the tokens read for a grown prompt; return the figures that the next prompt is compared with."""
        figures = answer.figures
        if before is not None and figures.prompt_tokens:
            reads = reads_of(figures, before)
            self._reads = self._reads.plus(reads) if self._reads else reads
        # A thought is not sent back, so the answer moves to another position.
        return replace(figures, answer_tokens=0) if answer.thought else figures

    async def _try_grammar(self, messages: tuple[Message, ...]) -> None:
        if self.facts is None or not self.facts.takes_grammar:
            return
        self._on_progress("whether a grammar is kept to")
        said = await self._say(ModelRequest(messages=messages, grammar=_PROOF, answer_tokens=60, seed=_SEED))
        self._keeps = said.startswith(_PROOF_BEGINS) and said.endswith(_PROOF_ENDS)

    async def _try_seed(self, messages: tuple[Message, ...], grammar: str) -> None:
        self._on_progress("whether a seed repeats an answer")
        takes = self.facts is not None and self.facts.takes_grammar
        request = ModelRequest(messages=messages, grammar=grammar if takes else "", answer_tokens=120, seed=_SEED)
        exact = [await self._say(replace(request, exact=True)) for _ in range(_REPEATED)]
        cached = [await self._say(request) for _ in range(_REPEATED)]
        self._repeats = (len(set(exact)) == 1, len({*exact, *cached}) == 1)

    async def _say(self, request: ModelRequest) -> str:
        text = ""
        async with aclosing(self._model.answer(request)) as items:
            async for item in items:
                if isinstance(item, TextDelta | ThoughtDelta):
                    text += item.text if isinstance(item, TextDelta) or request.grammar != _PROOF else ""
        return text


def _is_token(item: object) -> bool:
    return isinstance(item, TextDelta | ThoughtDelta)
