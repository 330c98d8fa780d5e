"""Step protocol: one Thought and one Action, as text. Reads an answer, or says exactly what is wrong with it."""

import re
from collections.abc import Mapping

from msgspec import Struct

from agent_workbench.core.patch.diff_text import DIFF_BEGINS
from agent_workbench.core.tools.arguments import ArgumentFault, Arguments, read_arguments
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.answer.step_repair import (
    LOOSE_ACTION,
    cut_made_up,
    repair_step,
    second_step_marks,
)

# Possessive, or a line of many blanks would be divided in every way there is.
ACTION_LINE = re.compile(r"^Action:[ \t]*+(?P<name>\S*+)[ \t]*+$", re.MULTILINE)


class StepCall(Struct, frozen=True):
    """A valid step: the thought, the tool, and its checked arguments (or raw text).

    `mended` says what was ignored to read it; empty if the answer has the required form.
    """

    thought: str
    tool: ToolSpec
    arguments: Arguments
    text: str
    mended: tuple[str, ...] = ()


class StepFault(Struct, frozen=True):
    """An answer that is not a step, and the reason."""

    reason: str


def thought_of(answer: str) -> str:
    """Return the thought of an answer, also of an unfinished one; empty if it has none."""
    before = ACTION_LINE.split(answer, maxsplit=1)[0]
    return before.lstrip().removeprefix("Thought:").strip()


def read_step(answer: str, tools: Mapping[str, ToolSpec]) -> StepCall | StepFault:
    """Return the step in `answer`, or exactly why it is not one.

    An answer in a similar form is read if it can mean only one step.
    """
    strict = _as_written(answer, tools)
    if isinstance(strict, StepCall) and _is_first(answer):
        if not strict.tool.raw or strict.tool.fenced:
            return strict
        if DIFF_BEGINS.match(strict.text):
            mended: list[str] = []
            text = cut_made_up(strict.text, mended)
            return StepCall(strict.thought, strict.tool, strict.arguments, text, tuple(mended))
    meant = repair_step(answer, tools)
    if meant is None:
        return strict
    if meant.tool.raw:
        return StepCall(meant.thought, meant.tool, Arguments({}), _ended(meant.text), meant.mended)
    try:
        arguments = read_arguments(meant.text, meant.tool)
    except ArgumentFault as fault:
        return StepFault(f"{meant.tool.name}: {fault}")
    return StepCall(meant.thought, meant.tool, arguments, meant.text, meant.mended)


def second_step(answer: str, tools: Mapping[str, ToolSpec]) -> int:
    """Return where a second step begins behind a complete one, 0 if none has begun."""
    action = LOOSE_ACTION.search(answer)
    if action is None:
        return 0
    raw = any(tool.raw and not tool.fenced and name in action["rest"] for name, tool in tools.items())
    for mark in second_step_marks(answer[action.end() :], raw=raw):
        first = answer[: action.end() + mark]
        if isinstance(read_step(first, tools), StepCall):
            return len(first)
    return 0


def _is_first(answer: str) -> bool:
    """Return True if no action in another form comes before the one in the required form."""
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
            wanted = "a piece and its new text" if tool.fenced else "a unified diff"
            return StepFault(f"{tool.name} needs {wanted} on the lines after `Action: {tool.name}`")
        return StepCall(thought, tool, Arguments({}), _ended(body))
    line = body.strip()
    if "\n" in line:
        extra = line.split("\n", 1)[1].strip().split("\n", 1)[0]
        return StepFault(f"one line of JSON arguments must end the answer, but more follows: {extra[:80]!r}")
    try:
        return StepCall(thought, tool, read_arguments(line or "{}", tool), line or "{}")
    except ArgumentFault as fault:
        return StepFault(f"{tool.name}: {fault}")
