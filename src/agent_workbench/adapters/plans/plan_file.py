"""Plan file: read strictly, changed in place, never overwritten blindly."""

import asyncio
import codecs
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.plans import plan_renderer
from agent_workbench.adapters.plans.plan_parser import Compose, PlanText, check_skills, read_plan
from agent_workbench.adapters.plans.plan_renderer import render_plan, render_quoted, render_tasks, with_tasks
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, PlanPiece, Task, TaskStatus, next_id
from agent_workbench.core.skills import SkillEntry
from agent_workbench.core.text.line_merge import merge_cleanly
from agent_workbench.core.yaml_documents import (
    MAX_BYTES,
    DocumentError,
    Node,
    after_lines,
    decode_document,
    line_end,
    line_start,
)
from agent_workbench.system.repo_files import change_inside, create_inside, read_inside

# A byte order mark that an editor wrote is kept.
BOM = codecs.BOM_UTF8

MOST_QUOTED = 50
"""Maximum number of values in a text that get quotes."""
_WORDED = "description|goal|suggested_approach|blocked_because|source"
_VALUE = re.compile(rf"(?P<key> *(?:- +)?(?:{_WORDED}): +|goal: +)(?P<value>[^\s\"'|>].*)", re.ASCII)
_ITEM = re.compile(r"(?P<key> *- +)(?P<value>[^\s\"'|>].*)", re.ASCII)
_KEY = re.compile(r"[a-z_]+:(?: |$)", re.ASCII)

PLACEHOLDER = "what is to be done"


class PlanFile:
    """Plan at `relative_path` (POSIX) of the repo `root`; `compose` parses YAML into nodes.

    Every change starts from the current content of the file, so edits made by hand are never lost.
    """

    def __init__(self, root: Path, relative_path: str, compose: Compose) -> None:
        self._root = root
        self._path = relative_path
        self._compose = compose

    @property
    def path(self) -> str:
        return self._path

    async def read(self) -> Plan:
        return await asyncio.to_thread(self._read)

    async def check(self, skills: Iterable[SkillEntry]) -> Plan:
        """Return the plan; raise `PlanError` with the position of any fault, also of a skill that cannot be used."""
        return await asyncio.to_thread(lambda: check_skills(self._read_text(self._text()), self._path, skills))

    async def set_status(self, task: TaskId, status: TaskStatus, reason: str = "") -> None:
        def change(before: PlanText) -> str:
            before.plan.task(task)
            wanted = before.plan.with_status(task, status, reason)
            new = wanted.task(task)
            old = before.plan.task(task)
            keys = {plan_renderer.REASON: new.blocked_because, plan_renderer.QUEUED_AS: new.queued_as}
            changed = {plan_renderer.REASON} if new.queued_as == old.queued_as else set(keys)

            def edit(before: PlanText) -> str:
                text = plan_renderer.with_status(before, task, status)
                for key in changed:
                    text = plan_renderer.with_reason(self._read_text(text), task, keys[key], key)
                return text

            return faithful(self._read_text, self._path, before, edit, wanted)

        await asyncio.to_thread(self._change, change)

    async def set_checks(self, task: TaskId, commands: Sequence[str]) -> None:
        def change(before: PlanText) -> str:
            wanted = before.plan.with_checks(task, tuple(commands))
            return faithful(
                self._read_text,
                self._path,
                before,
                lambda text: plan_renderer.with_checks(text, task, commands),
                wanted,
            )

        await asyncio.to_thread(self._change, change)

    async def move(self, task: TaskId, *, up: bool) -> None:
        def change(before: PlanText) -> str:
            wanted = before.plan.moved(task, up=up)
            return faithful(self._read_text, self._path, before, lambda text: with_moved(text, task, up=up), wanted)

        await asyncio.to_thread(self._change, change)

    async def piece(self, task: TaskId | None, *, new: bool = False, draft: Task | None = None) -> PlanPiece:
        if new:
            # Without a file the first task writes it.
            parsed = await asyncio.to_thread(
                lambda: self._parsed(read_inside(self._root, self._path, MAX_BYTES) or b"")
            )
            return new_piece(parsed, self._path, task, draft)
        text = await asyncio.to_thread(self._text)
        if task is not None:
            return task_piece(self._read_text(text), self._path, task)
        return PlanPiece(self._path, text, 0, len(text), text)

    async def replace_text(self, before: str, text: str, keep: Sequence[TaskId] = ()) -> None:
        ours = read_quoted(text, self._path, self._compose)
        text = ours.text
        for each in keep:
            if each not in {task.id for task in ours.plan.tasks}:
                raise PlanError(
                    f"{each} is in progress and must stay in the plan", advice="put it back, or abort it first"
                )

        def changed(data: bytes | None) -> bytes:
            if data is None and before:
                raise _missing(self._path)
            data = data or b""
            merged = merge_cleanly(before, self._decoded(data), text)
            if merged is None:
                raise PlanError(
                    f"{self._path} was changed in the same lines meanwhile, so nothing was written",
                    advice="copy your text, leave with Esc, and open the plan again",
                )
            self._read_text(merged)
            return (BOM if data.startswith(BOM) else b"") + merged.encode()

        await asyncio.to_thread(change_inside, self._root, self._path, MAX_BYTES, changed)

    async def add(self, tasks: Sequence[Task]) -> None:
        def change(before: PlanText) -> str:
            known = {task.id for task in before.plan.tasks}
            if taken := [task.id for task in tasks if task.id in known]:
                raise PlanError(f"{self._path} already has a task {taken[0]}", advice="give the new task another id")
            return self._with_tasks(before, tasks)

        if tasks:
            await asyncio.to_thread(self._change, change, create=True)

    async def add_new(self, task: Task) -> Task:
        added = task

        def change(before: PlanText) -> str:
            nonlocal added
            if any(each.id == task.id for each in before.plan.tasks):
                added = replace(task, id=next_id(before.plan.tasks))
            return self._with_tasks(before, (added,))

        await asyncio.to_thread(self._change, change, create=True)
        return added

    async def new_plan(self, plan: Plan) -> str:
        """Replace the plan and return the path of the archived old one, empty if there was none.

        Raises `PlanError` for a plan that could not be read back, and `StorageError`.
        """
        return await asyncio.to_thread(self._begin, plan)

    async def content_sha(self) -> str:
        data = await asyncio.to_thread(read_inside, self._root, self._path, MAX_BYTES)
        return "" if data is None else sha256(data).hexdigest()

    def render(self, plan: Plan) -> str:
        return faithful(self._read_text, self._path, self._read_text(""), lambda _: render_plan(plan), plan)

    def parse(self, text: str, name: str) -> Plan:
        return read_quoted(text, name, self._compose).plan

    def piece_of(self, text: str, name: str, task: TaskId) -> PlanPiece:
        return task_piece(read_plan(text, name, self._compose), name, task)

    async def keep_beside(self, text: str) -> str:
        """Write a text that is not a valid plan to a new file beside the plan; return its name."""
        path = PurePosixPath(self._path)
        data = text.encode("utf-8", "replace")
        return await asyncio.to_thread(
            create_inside,
            self._root,
            data,
            MAX_BYTES,
            lambda suffix: str(path.with_name(f"{path.stem}.edited{suffix}{path.suffix}")),
        )

    def _with_tasks(self, before: PlanText, tasks: Sequence[Task]) -> str:
        wanted = Plan((*before.plan.tasks, *tasks), before.plan.goal)
        return faithful(self._read_text, self._path, before, lambda text: plan_renderer.with_tasks(text, tasks), wanted)

    def _read(self) -> Plan:
        return self._read_text(self._text()).plan

    def _text(self) -> str:
        data = read_inside(self._root, self._path, MAX_BYTES)
        if data is None:
            raise _missing(self._path)
        return self._decoded(data)

    def _change(self, change: Callable[[PlanText], str], *, create: bool = False) -> None:
        def changed(data: bytes | None) -> bytes:
            if data is None and not create:
                raise _missing(self._path)
            text = change(self._parsed(data or b""))
            return (BOM if (data or b"").startswith(BOM) else b"") + text.encode()

        change_inside(self._root, self._path, MAX_BYTES, changed)

    def _begin(self, plan: Plan) -> str:
        text = self.render(plan)
        archived = ""

        def changed(data: bytes | None) -> bytes:
            nonlocal archived
            if data is not None:
                archived = _archive(self._root, self._path, data)
            return text.encode()

        change_inside(self._root, self._path, MAX_BYTES, changed)
        return archived

    def _parsed(self, data: bytes) -> PlanText:
        return self._read_text(self._decoded(data))

    def _decoded(self, data: bytes) -> str:
        try:
            return decode_document(data)
        except DocumentError as fault:
            raise PlanError(fault.in_file(self._path), advice=fault.advice) from fault

    def _read_text(self, text: str) -> PlanText:
        return read_plan(text, self._path, self._compose)


def _archive(root: Path, name: str, data: bytes) -> str:
    """Write a former plan beside the plan and return its path."""
    path = PurePosixPath(name)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    archive = path.parent / "archive"
    return create_inside(root, data, MAX_BYTES, lambda suffix: str(archive / f"{stamp}{suffix}-{path.name}"))


def _missing(name: str) -> PlanError:
    return PlanError(
        f"there is no plan at {name}",
        advice="`agent init` creates an empty plan, `agent plan new` asks the model for one",
    )


def faithful(
    read: Callable[[str], PlanText], path: str, before: PlanText, edit: Callable[[PlanText], str], wanted: Plan
) -> str:
    """Return the edited text; raise `PlanError` if it does not read back as `wanted`."""
    fault: PlanError | None = None
    for each in dict.fromkeys((before.text, plan_renderer.with_closed_text(before))):
        try:
            text = edit(read(each))
            if read(text).plan == wanted:
                return text
        except PlanError as error:
            fault = fault or error
    raise PlanError(
        f"{path} could not be changed" + (f": {fault}" if fault else ""), advice="edit the file by hand"
    ) from fault


def read_quoted(text: str, name: str, compose: Compose) -> PlanText:
    """Return the plan in a text, with quotes around words that lack them.

    Raises `PlanError`, which tells the fault of the text as it is, if quotes do not mend it.
    """
    first: PlanError | None = None
    for _ in range(MOST_QUOTED):
        try:
            return read_plan(text, name, compose)
        except PlanError as fault:
            first = first or fault
            cause = fault.__cause__
            quoted = with_quotes(text, cause.mark.line) if isinstance(cause, DocumentError) else None
            if quoted is None:
                raise first from cause
            text = quoted
    return read_plan(text, name, compose)


def with_quotes(text: str, line: int) -> str | None:
    """Return the text with quotes around the words on a line (from 1), None if that is no line of words without them.

    Words are the value of a key that takes a sentence, or an item of a list such as a command.
    """
    start = end = 0
    for _ in range(line):
        start, end = end, line_end(text, end)
    whole = text[start:end].rstrip()
    match = _VALUE.fullmatch(whole) or _ITEM.fullmatch(whole)
    if match is None or (match.re is _ITEM and _KEY.match(match["value"])):
        return None
    return text[:start] + match["key"] + render_quoted(match["value"]) + text[start + len(whole) :]


class TextSpan(Struct, frozen=True):
    """Range of characters in a text, from 0, end excluded."""

    start: int
    end: int


def task_piece(before: PlanText, path: str, task: TaskId) -> PlanPiece:
    """Return the lines of a task with the comment above them."""
    spans = _task_spans(before)
    number = [each.id for each in before.plan.tasks].index(before.plan.task(task).id)
    span = spans[number]
    text = before.text[span.start : span.end]
    first = _line(before.text, span.start)
    return PlanPiece(path, before.text, span.start, span.end, text, first, first, task)


def new_piece(before: PlanText, path: str, after: TaskId | None, draft: Task | None = None) -> PlanPiece:
    """Return a new task after the task `after`, or at the end of the plan: `draft`, or a template (None)."""
    new = replace(draft or Task(TaskId(""), PLACEHOLDER), id=next_id(before.plan.tasks))
    placeholder = "" if draft else PLACEHOLDER
    listing = before.listing
    if listing is None or not listing.items or listing.flow:
        text = with_tasks(before, (new,))
        line = _line(text, text.rindex(placeholder or new.id))
        whole = PlanPiece(path, before.text, 0, len(before.text), text, 1, line, None, new=True)
        return replace(whole, placeholder=placeholder)
    ids = [each.id for each in before.plan.tasks]
    place = _task_spans(before)[ids.index(after) if after in ids else -1].end
    newline = "\r\n" if "\r\n" in before.text else "\n"
    joint = "" if before.text[:place].endswith("\n") else newline
    indent = listing.start.column - 1
    lines = render_tasks((new,), indent) if draft else _stub(new.id, ids[-1], " " * indent)
    first = _line(before.text, place) + bool(joint)
    text = joint + lines.replace("\n", newline)
    return PlanPiece(path, before.text, place, place, text, first, first + 1, new.id, new=True, placeholder=placeholder)


def with_moved(before: PlanText, task: TaskId, *, up: bool) -> str:
    """Return the text with a task moved before or after its neighbour, each with the comment above it."""
    text, spans = before.text, _task_spans(before)
    at = [each.id for each in before.plan.tasks].index(before.plan.task(task).id)
    if not 0 <= (first := at - 1 if up else at) < len(spans) - 1:
        return text
    one, other = spans[first], spans[first + 1]
    upper, between, lower = text[one.start : one.end], text[one.end : other.start], text[other.start : other.end]
    if upper.endswith("\n") and not lower.endswith("\n"):
        newline = "\r\n" if upper.endswith("\r\n") else "\n"
        lower, upper = lower + newline, upper.removesuffix(newline)
    return text[: one.start] + lower + between + upper + text[other.end :]


def _task_spans(before: PlanText) -> list[TextSpan]:
    """Return the span of each task: whole lines, except in a flow list."""
    listing = before.listing
    if listing is None:
        return []
    if listing.flow:
        return [TextSpan(item.start.index, item.end.index) for item in listing.items]
    spans: list[TextSpan] = []
    for item in listing.items:
        # A line that looks like a comment may be the last line of the previous task's text.
        above = spans[-1].end if spans else 0
        spans.append(TextSpan(max(above, _start(before.text, item)), _end(before.text, item)))
    return spans


def _start(text: str, item: Node) -> int:
    """Return the start of the item's dash, or of the comment directly above it."""
    start = line_start(text, text.rfind("-", 0, item.start.index))
    while start and text[(above := line_start(text, start - 1)) : start].lstrip().startswith("#"):
        start = above
    return start


def _end(text: str, item: Node) -> int:
    """Return the end of the item's last line, without empty lines below it."""
    end = after_lines(text, item)
    while end and not text[line_start(text, end - 1) : end].strip():
        end = line_start(text, end - 1)
    return end


def _line(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1


def _stub(new: TaskId, last: TaskId, indent: str) -> str:
    lines = (
        f"- id: {new}",
        f"  description: {PLACEHOLDER}",
        '  goal: ""',
        "  accept_tests: []",
        f"  # depends_on: [{last}]",
        '  # scope: {allowed_write_globs: ["src/**"]}',
        "  status: pending",
    )
    return "".join(f"{indent}{line}\n" for line in lines)
