"""The step protocol: one Thought and one Action, as text; reading it, and saying what is wrong with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent_workbench.engine.arguments import ArgumentFault, Arguments, read_arguments
from agent_workbench.engine.tools.tool import Tool

# Possessive, or a line of many blanks would be divided in every way there is.
ACTION_LINE = re.compile(r"^Action:[ \t]*+(?P<name>\S*+)[ \t]*+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StepCall:
    """A valid step: what was thought, which tool is called, and its checked arguments (or raw text)."""

    thought: str
    tool: Tool
    arguments: Arguments
    text: str


@dataclass(frozen=True, slots=True)
class StepFault:
    """An answer that is no step, and why."""

    reason: str


def thought_of(answer: str) -> str:
    """Return the thought of an answer, as far as it has one (also of an unfinished one)."""
    before = ACTION_LINE.split(answer, maxsplit=1)[0]
    return before.lstrip().removeprefix("Thought:").strip()


def read_step(answer: str, tools: Mapping[str, Tool]) -> StepCall | StepFault:
    """Return the step that `answer` holds, or exactly what keeps it from being one."""
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


def _with_arguments(thought: str, tool: Tool, rest: str) -> StepCall | StepFault:
    body = rest.removeprefix("\n")
    if tool.raw:
        if not body.strip():
            return StepFault(f"{tool.name} needs a unified diff on the lines after `Action: {tool.name}`")
        return StepCall(thought, tool, Arguments({}), body if body.endswith("\n") else body + "\n")
    line = body.strip()
    if "\n" in line:
        extra = line.split("\n", 1)[1].strip().split("\n", 1)[0]
        return StepFault(f"one line of JSON arguments must end the answer, but more follows: {extra[:80]!r}")
    try:
        return StepCall(thought, tool, read_arguments(line or "{}", tool.arguments), line or "{}")
    except ArgumentFault as fault:
        return StepFault(f"{tool.name}: {fault}")
