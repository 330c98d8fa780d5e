"""Step protocol: one Thought and one Action, read strictly, or repaired if only one reading is possible.

A repair needs a complete JSON object or a diff with headers, and the name of a tool. It ignores what models add around
them: fences, bold letters, labels, invented observations.
"""

import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from agent_workbench.core.events import GrammarIgnored, ModelAnswered, PromptBuilt
from agent_workbench.core.patch.diff_text import DIFF_BEGINS
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.tools.arguments import ArgumentFault, Arguments, properties_of, read_arguments
from agent_workbench.core.tools.spec import ToolSpec

# Possessive, or a line of many blanks would be divided in every way there is.
ACTION_LINE = re.compile(r"^Action:[ \t]*+(?P<name>\S*+)[ \t]*+$", re.MULTILINE)

_THOUGHT_END = "</think>"
_FENCE = re.compile(r"^[ \t]*+```[\w+-]*+[ \t]*+$")
LOOSE_ACTION = re.compile(
    r"^[ \t>#*_-]{0,8}action[ \t*_`]{0,4}:[ \t*_`\[]{0,6}(?P<rest>.*)$", re.IGNORECASE | re.MULTILINE
)
_NAME = re.compile(r"(?P<name>[A-Za-z][\w-]{0,60})")
_THOUGHT = re.compile(r"^[\s>#*_-]{0,8}thought[ \t*_]{0,4}(:|\n|$)[ \t*_]{0,4}", re.IGNORECASE)
_LABEL = re.compile(
    r"^[ \t>*_]{0,6}(action[ _]input|arguments?|args|input|parameters|json)[ \t*_]{0,4}:[ \t*_]{0,4}", re.IGNORECASE
)
_MARK = re.compile(r"^[*_]{0,2}(?P<word>Observation|Thought|Action)[*_]{0,2}:", re.MULTILINE)
_TOOL_CALL = "<tool_call>"
_OPENED = re.compile(r"^`{3,}[^`\n]*+$", re.MULTILINE)
_PIECE = re.compile(r"[#*\s]*(?:new file|piece)\b", re.IGNORECASE)
_CHANGES = re.compile(r"^(\+|-|@@)", re.MULTILINE)

WHAT_CHARS = 200


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


class RepairedStep(Struct, frozen=True):
    """A step read from a malformed answer: thought, tool, and arguments (one line of JSON) or diff.

    `mended` lists what was ignored.
    """

    thought: str
    tool: ToolSpec
    text: str
    mended: tuple[str, ...]


def repair_step(answer: str, tools: Mapping[str, ToolSpec]) -> RepairedStep | None:
    """Return the step in a malformed answer, None if it is ambiguous."""
    mended: list[str] = []
    text = _without_wrapping(answer, mended)
    action = LOOSE_ACTION.search(text)
    if action is None:
        return _tool_call(text, tools, mended) or _bare_pieces(text, tools, mended)
    named = _NAME.match(action["rest"])
    tool = _tool(named["name"] if named else "", tools, mended)
    if named is None or tool is None:
        return None
    thought = _THOUGHT.sub("", text[: action.start()], count=1).strip().strip("*").strip()
    if not _THOUGHT.match(text):
        mended.append("the answer does not begin with `Thought: `")
    after = action["rest"][named.end() :].strip("`*_]:.,; \t").removesuffix("()")
    body = "\n".join(part for part in (after, text[action.end() :].removeprefix("\n")) if part)
    found = _body(body, tool, mended)
    return (
        None
        if found is None
        else RepairedStep(thought, tool, found, tuple(mended) or ("signs around the action's name",))
    )


def _body(body: str, tool: ToolSpec, mended: list[str]) -> str | None:
    if tool.fenced:
        return body if body.strip() else None
    return _diff(body, mended) if tool.raw else _json(body, tool, mended)


def _without_wrapping(answer: str, mended: list[str]) -> str:
    """Return the answer without leading reasoning (`</think>`) and without a surrounding fence."""
    text = answer
    before, mark, after = text.rpartition(_THOUGHT_END)
    if mark and not LOOSE_ACTION.search(before) and LOOSE_ACTION.search(after):
        mended.append("reasoning before the step")
        text = after
    lines = text.strip().split("\n")
    if _FENCE.match(lines[0]):
        mended.append("a fence around the step")
        lines = lines[1:-1] if lines[-1].strip() == "```" else lines[1:]
    return "\n".join(lines).lstrip()


def _tool(name: str, tools: Mapping[str, ToolSpec], mended: list[str]) -> ToolSpec | None:
    if name in tools:
        return tools[name]
    plain = name.lower().replace("-", "_")
    if plain in tools:
        mended.append(f"{name} is read as {plain}")
    return tools.get(plain)


def _json(body: str, tool: ToolSpec, mended: list[str]) -> str | None:
    """Return the JSON object at the start of `body` on one line, None if there is none."""
    text = body.lstrip()
    if label := _LABEL.match(text):
        mended.append(f"the label {label[1]!r} before the arguments")
        text = text[label.end() :].lstrip()
    fenced, text = _opened(text)
    if fenced:
        mended.append("a fence around the arguments")
    if not text.startswith("{"):
        needs_none = not any(argument.required for argument in properties_of(tool))
        if needs_none and (not text.strip() or _MARK.match(text)):
            _note_rest(text, mended)
            return "{}"
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    line = text[:end]
    if "\n" in line:
        mended.append("arguments over several lines")
        # Within a text no line may end, so these are all between the values.
        line = " ".join(part.strip() for part in line.split("\n"))
    _note_rest(text[end:].lstrip().removeprefix("```") if fenced else text[end:], mended)
    return line


def _opened(text: str) -> tuple[bool, str]:
    first, _, rest = text.partition("\n")
    return (True, rest.lstrip()) if _FENCE.match(first) else (False, text)


def _note_rest(rest: str, mended: list[str]) -> None:
    if not rest.strip():
        return
    found = _MARK.search(rest)
    if found and found["word"] == "Observation":
        mended.append("an observation that the model made up, and all after it")
    elif found:
        mended.append("a second step: only the first counts")
    else:
        mended.append(f"text after the arguments: {rest.strip()[:60]!r}")


def _diff(body: str, mended: list[str]) -> str | None:
    """Return the diff in `body`, None if there is none."""
    text = _diff_in_json(body, mended) or body
    begins = DIFF_BEGINS.search(text)
    if begins is None:
        return None
    before, text = text[: begins.start()], text[begins.start() :]
    fence = next((line for line in before.split("\n") if _FENCE.match(line)), "")
    if fence:
        mended.append("a fence around the diff")
        text = "".join(_until_fence(text))
    elif before.strip():
        mended.append(f"text before the diff: {before.strip()[:60]!r}")
    return cut_made_up(text, mended)


def _until_fence(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        if line.strip() == "```":
            return
        yield line


def _diff_in_json(body: str, mended: list[str]) -> str:
    """Return the only text in a JSON object if it is a diff, else an empty text."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(body.lstrip())
    except (ValueError, RecursionError):
        return ""
    texts = [each for each in value.values() if isinstance(each, str)] if isinstance(value, dict) else []
    if len(texts) != 1 or not DIFF_BEGINS.search(texts[0]):
        return ""
    mended.append("JSON around the diff")
    return texts[0]


def cut_made_up(diff: str, mended: list[str]) -> str:
    """Return a diff without the observation and steps that the model invented after it.

    A line of code whose leading sign is missing may begin with the same words. If signs of a change follow it, nothing
    is cut.
    """
    marks = list(_MARK.finditer(diff))
    if not marks:
        return diff
    until = marks[1].start() if len(marks) > 1 else len(diff)
    if _CHANGES.search(diff[marks[0].start() : until]):
        return diff
    _note_rest(diff[marks[0].start() :], mended)
    return diff[: marks[0].start()].rstrip("\n") + "\n"


def _bare_pieces(text: str, tools: Mapping[str, ToolSpec], mended: list[str]) -> RepairedStep | None:
    """Return an answer that only has text and a fence with code as the step that rewrites a piece."""
    tool, fence = next((each for each in tools.values() if each.fenced), None), _OPENED.search(text)
    if tool is None or fence is None:
        return None
    mended.append(f"no line `Action: {tool.name}`")
    head = text[: fence.start()].rstrip().rpartition("\n")
    named = head[2] if _PIECE.match(head[2]) else ""
    before = head[0] if named else text[: fence.start()]
    thought = _THOUGHT.sub("", before, count=1).strip()
    return RepairedStep(thought, tool, f"{named}\n{text[fence.start() :]}".lstrip(), tuple(mended))


def second_step_marks(body: str, *, raw: bool) -> Iterator[int]:
    """Yield where a second step may begin in what follows the first one's action: at a line `Thought:` behind no fence.

    In a diff no sign of a change may follow it up to the next such mark, as in `cut_made_up`.
    """
    marks = [found for found in _MARK.finditer(body) if not _in_fence(body[: found.start()])]
    for at, found in enumerate(marks):
        if found["word"] != "Thought":
            continue
        after = marks[at + 1].start() if marks[at + 1 :] else 0
        if not raw or (after and not _CHANGES.search(body[found.start() : after])):
            yield found.start()


def _in_fence(text: str) -> bool:
    """Return True if a fence is open at the end of a text; a longer fence is closed by none that is shorter."""
    opened = ""
    for fence in re.findall(r"^[ \t]*(`{3,})", text, re.MULTILINE):
        if not opened:
            opened = fence
        elif len(fence) >= len(opened):
            opened = ""
    return bool(opened)


def _tool_call(text: str, tools: Mapping[str, ToolSpec], mended: list[str]) -> RepairedStep | None:
    """Return the call in the form of other templates: `<tool_call>{"name": …, "arguments": {…}}`."""
    before, mark, after = text.partition(_TOOL_CALL)
    if not mark or _TOOL_CALL in after:
        return None
    try:
        call, _ = json.JSONDecoder().raw_decode(after.lstrip())
    except (ValueError, RecursionError):
        return None
    name, arguments = (call.get("name"), call.get("arguments")) if isinstance(call, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(arguments, dict) or name not in tools:
        return None
    mended.append("a call in another form: `<tool_call>`")
    tool = tools[name]
    line = json.dumps(arguments, ensure_ascii=False)
    body = _diff(line, mended) if tool.raw else line
    thought = _THOUGHT.sub("", before, count=1).strip()
    return None if body is None else RepairedStep(thought, tool, body, tuple(mended))


def grammar_ignored(state: SessionState, answer: ModelAnswered, read: StepCall | StepFault) -> GrammarIgnored | None:
    """Return the evidence that the server ignored the grammar, None if there is none.

    A diff that fits no file is no evidence. Scripted answers are not checked.
    """
    events = (recorded.event for recorded in reversed(state.latest_events))
    asked = next((event for event in events if isinstance(event, PromptBuilt)), None)
    facts = state.model_for(asked.purpose) if asked else None
    if asked is None or not asked.grammar_sha or facts is None or facts.scripted:
        return None
    why = read.reason if isinstance(read, StepFault) else "; ".join(read.mended)
    endpoint = answer.endpoint or asked.endpoint
    return (
        GrammarIgnored(endpoint, answer.step, why[:WHAT_CHARS]) if why and endpoint not in state.ungrammatical else None
    )
