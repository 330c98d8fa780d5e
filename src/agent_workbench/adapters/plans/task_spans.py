"""Spans of single tasks in the text of a plan, for editing, moving and inserting."""

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.plans.plan_parser import PlanText
from agent_workbench.adapters.plans.plan_renderer import render_tasks
from agent_workbench.adapters.plans.text_edits import with_tasks
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import PlanPiece, Task, next_id
from agent_workbench.core.yaml_documents import Node, after_lines, line_start

PLACEHOLDER = "what is to be done"


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
