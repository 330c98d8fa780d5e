"""The step protocol: one Thought and one Action, as text; reading it, and saying what is wrong with it."""

import re
from collections.abc import Mapping

from msgspec import Struct

from agent_workbench.core.tools.arguments import ArgumentFault, Arguments, read_arguments
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.answer.step_repair import DIFF_BEGINS, LOOSE_ACTION, cut_made_up, read_meaning

# Possessive, or a line of many blanks would be divided in every way there is.
ACTION_LINE = re.compile(r"^Action:[ \t]*+(?P<name>\S*+)[ \t]*+$", re.MULTILINE)


class StepCall(Struct, frozen=True):
    """A valid step: what was thought, which tool is called, and its checked arguments (or raw text).

    `mended` says what was passed over to read it; nothing, where the answer has the form that was asked for.
    """

    thought: str
    tool: ToolSpec
    arguments: Arguments
    text: str
    mended: tuple[str, ...] = ()


class StepFault(Struct, frozen=True):
    """An answer that is no step, and why."""

    reason: str


def thought_of(answer: str) -> str:
    """Return the thought of an answer, as far as it has one (also of an unfinished one)."""
    before = ACTION_LINE.split(answer, maxsplit=1)[0]
    return before.lstrip().removeprefix("Thought:").strip()


def read_step(answer: str, tools: Mapping[str, ToolSpec]) -> StepCall | StepFault:
    """Return the step that `answer` holds, or exactly what keeps it from being one.

    An answer that is not quite in the form of a step is read where it can mean only one.
    """
    strict = _as_written(answer, tools)
    if isinstance(strict, StepCall) and _is_first(answer):
        if not strict.tool.raw:
            return strict
        if DIFF_BEGINS.match(strict.text):
            mended: list[str] = []
            text = cut_made_up(strict.text, mended)
            return StepCall(strict.thought, strict.tool, strict.arguments, text, tuple(mended))
    meant = read_meaning(answer, tools)
    if meant is None:
        return strict
    if meant.tool.raw:
        return StepCall(meant.thought, meant.tool, Arguments({}), _ended(meant.text), meant.mended)
    try:
        arguments = read_arguments(meant.text, meant.tool)
    except ArgumentFault as fault:
        return StepFault(f"{meant.tool.name}: {fault}")
    return StepCall(meant.thought, meant.tool, arguments, meant.text, meant.mended)


def _is_first(answer: str) -> bool:
    """Whether no action in another form stands before the one in the form that was asked for."""
    first, strict = LOOSE_ACTION.search(answer), ACTION_LINE.search(answer)
    return first is None or strict is None or first.start() >= strict.start()


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _as_written(answer: str, tools: Mapping[str, ToolSpec]) -> StepCall | StepFault:
    if not answer.strip():
        return StepFault("the answer is empty; write a line `Thought: …` and then a line `Action: <tool>`")
    if not answer.lstrip().startswith("Thought:"):
        return StepFault("the answer does not begin with `Thought: `")
    actions = list(ACTION_LINE.finditer(answer))
    if not actions:
        return StepFault("the answer has no line `Action: <tool>`")
    action = actions[0]
    tool = tools.get(action["name"])
    if tool is None:
        return StepFault(f"there is no tool {action['name']!r}; the tools are: {', '.join(tools)}")
    return _with_arguments(thought_of(answer), tool, answer[action.end() :])


def _with_arguments(thought: str, tool: ToolSpec, rest: str) -> StepCall | StepFault:
    body = rest.removeprefix("\n")
    if tool.raw:
        if not body.strip():
            return StepFault(f"{tool.name} needs a unified diff on the lines after `Action: {tool.name}`")
        return StepCall(thought, tool, Arguments({}), _ended(body))
    line = body.strip()
    if "\n" in line:
        extra = line.split("\n", 1)[1].strip().split("\n", 1)[0]
        return StepFault(f"one line of JSON arguments must end the answer, but more follows: {extra[:80]!r}")
    try:
        return StepCall(thought, tool, read_arguments(line or "{}", tool), line or "{}")
    except ArgumentFault as fault:
        return StepFault(f"{tool.name}: {fault}")
