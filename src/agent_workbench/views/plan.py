"""The panes of the plan and of a task's notes; words about status, estimates and edits of tasks."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Owner, Plan, Task, TaskEdit, TaskStatus, WorkState, work_state
from agent_workbench.core.proposed_plan import ProposedPlan
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.task_estimates import FEW, Complexity, Estimate, Spread
from agent_workbench.core.task_routing import needs_text
from agent_workbench.core.text.amounts import counted_text, dollars_text, quoted
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Entry, Tone

GLYPHS = {
    WorkState.PENDING: ("○", Tone.DIM),
    WorkState.RUNNING: ("●", Tone.ACCENT),
    WorkState.WAITS: ("●", Tone.WARN),
    WorkState.STOPPED: ("○", Tone.WARN),
    WorkState.BLOCKED: ("⊘", Tone.WARN),
    WorkState.DONE: ("✓", Tone.GOOD),
    WorkState.FAILED: ("✗", Tone.BAD),
    WorkState.QUEUED: ("◌", Tone.ACCENT),
}

MOST_SHOWN = 20

UNKNOWN = "no estimate: no task is recorded yet"
RANK = tuple(Complexity)


class TaskRow(Struct, frozen=True):
    """One task: a short entry for the list and a long one. `mergeable`: its commit is not merged yet.

    `merged`: this session merged it.
    `open`: the task is still to be done. `blocked`: the user blocked it. `proposed`: the model proposed it, and it is
    in no plan yet.
    """

    id: TaskId
    short: Entry
    long: Entry
    running: bool
    mergeable: bool
    open: bool
    blocked: bool = False
    proposed: bool = False
    merged: bool = False


class PlanView(Struct, frozen=True):
    """The list, its title, and the text for an empty list. `proposal` is the key of a proposed plan that waits."""

    title: str
    rows: tuple[TaskRow, ...]
    empty: str
    busy: bool
    proposal: str = ""


def view_plan(state: SessionState, no_plan: str = "", taken: Collection[TaskId] = ()) -> PlanView:
    """Return the plan pane. `no_plan` says why there is none; other sessions work on the tasks of `taken`."""
    done = sum(task.status is TaskStatus.DONE and not _is_running(state, task) for task in state.plan.tasks)
    count = f" · {done} of {len(state.plan.tasks)} done" if state.plan.tasks else ""
    return PlanView(
        title=f"Plan{count}",
        rows=tuple(_row(state, task, taken=task.id in taken) for task in state.plan.tasks),
        empty=_empty(state, no_plan),
        busy=state.unfinished,
    )


def is_mergeable(state: SessionState, task: TaskId) -> bool:
    """Return True if a commit of this session for the task is not in the user's branch."""
    run = state.run_of(task)
    return run is not None and run.commit is not None and run.merged is None


def _empty(state: SessionState, no_plan: str) -> str:
    if not state.plan_path:
        return sanitize(no_plan, limit_chars=1000) or "reading the plan …"
    ways = ": takes one in words, n as YAML, P asks the model for a plan."
    return f"{sanitize_line(state.plan_path)} has no task yet. {ways}"


def _row(state: SessionState, task: Task, *, taken: bool = False) -> TaskRow:
    run = state.run_of(task.id)
    mergeable = is_mergeable(state, task.id)
    running = _is_running(state, task)
    kind = task_state(state, task, taken=taken)
    word, (glyph, tone) = str(kind), GLYPHS[kind]
    if run is not None and run.merged is not None:
        word = f"merged into {sanitize_line(run.merged.into, 40)}"
    elif mergeable:
        word += ", not merged"
    if task.status is TaskStatus.DONE and not (run is not None and run.shown_to_pass) and not running:
        glyph, tone = "•", Tone.PLAIN  # the check mark stands where this session saw the checks pass
        word += ", nothing was checked" if run is not None and not run.checks else ""
    head = Block(sanitize_line(f"{task.id}  {task.description}"), Tone.STRONG, glyph, tone)
    if task.blocked_because:
        word += f": {sanitize_line(task.blocked_because, 300)}"
    if taken:
        word += " in another session"
    elif kind is WorkState.STOPPED:
        word += "; s goes on with it"
    if task.status is TaskStatus.QUEUED and not running:
        word = f"queued as {sanitize_line(task.queued_as, 80)}; Q shows it"
    if task.status is TaskStatus.FAILED and not running and not taken:
        why = f": {sanitize_line(run.reason, 200)}" if run is not None and run.reason else ""
        word = f"failed{why}; s starts it again"
    under = Block(", ".join((word, *_remarks(state.plan, task), *_changed(state, task))), tone)
    return TaskRow(
        id=task.id,
        short=Entry(task.id, (head, under)),
        long=Entry(task.id, (replace(head, space_before=True), under, *task_details(task))),
        running=running,
        mergeable=mergeable,
        open=task.status in (TaskStatus.PENDING, TaskStatus.IN_PROGRESS) and not taken,
        blocked=task.status is TaskStatus.BLOCKED,
        merged=run is not None and run.merged is not None,
    )


def task_state(state: SessionState, task: Task, *, taken: bool) -> WorkState:
    """Return the state of a task as a session sees it; `taken`: another session works on it."""
    if _is_running(state, task):
        return work_state(TaskStatus.IN_PROGRESS, held=True, waits=state.waiting is not None)
    if taken:
        return WorkState.RUNNING
    run = state.run_of(task.id)
    ended = run.status if run is not None and task.status is TaskStatus.IN_PROGRESS else None
    return work_state(ended or task.status, held=False, waits=False)


def _is_running(state: SessionState, task: Task) -> bool:
    """Return True if this session works on the task, whatever status the plan shows after a fork."""
    return state.run is not None and state.run.task == task.id and state.unfinished


def _changed(state: SessionState, task: Task) -> tuple[str, ...]:
    """Return a remark if the plan's definition of the running task has changed since the run started."""
    run = state.run
    same = run is None or run.task != task.id or not state.unfinished or run.definition.defined_as(task)
    return () if same else ("changed in the plan; that applies to its next run",)


def _remarks(plan: Plan, task: Task) -> tuple[str, ...]:
    planned = {each.id for each in plan.tasks}
    waits = [each for each in plan.waits_for(task) if each in planned]
    return (
        *((f"waits for {', '.join(waits)}",) if waits else ()),
        *(("for a person",) if task.owner is Owner.HUMAN else ()),
        *((f"{task.subtask} of {sanitize_line(task.parent_issue, 40)}",) if task.subtask else ()),
    )


def task_details(task: Task) -> tuple[Block, ...]:
    """Return the fields of a task that say something, each below its label."""
    limits = task.constraints
    budget = (
        f"{task.budget.tokens:,} tokens" if task.budget.tokens else "",
        f"{task.budget.minutes:g} minutes" if task.budget.minutes else "",
        counted_text(limits.max_files_changed, "file") if limits.max_files_changed else "",
        f"{limits.max_diff_bytes:,} bytes of diff" if limits.max_diff_bytes else "",
    )
    wide_open = task.scope.allowed_write_globs == ("**",)
    told = (
        ("Goal", task.goal),
        ("Approach", task.suggested_approach),
        ("Edits", "\n".join(edit_lines(task))),
        ("Must pass", "\n".join(task.accept_tests)),
        ("At most", ", ".join(filter(None, budget))),
        ("May write", "" if wide_open else "  ".join(task.scope.allowed_write_globs)),
        ("Kind", " · ".join(filter(None, (str(task.intent or ""), task.service)))),
        ("Needs", needs_text(task.needs)),
        ("Skills", ", ".join(task.applicable_skills)),
        ("From", task.source),
    )
    return tuple(
        block
        for label, text in told
        if text.strip()
        for block in (Block(label, Tone.DIM, space_before=True), Block(sanitize(text.strip(), limit_chars=4000)))
    )


def edit_lines(task: Task) -> tuple[str, ...]:
    """Return what each edit of a task does; of many the first ones and the number of the rest."""
    more = len(task.edits) - MOST_SHOWN
    lines = tuple(map(_edit_line, task.edits[:MOST_SHOWN]))
    return (*lines, f"and {more} more") if more > 0 else lines


def _edit_line(edit: TaskEdit) -> str:
    if edit.diff is not None:
        named = [line[4:].split("\t")[0] for line in edit.diff.splitlines() if line.startswith(("+++ ", "--- "))]
        paths = dict.fromkeys(name.removeprefix("a/").removeprefix("b/") for name in named if name != "/dev/null")
        return f"diff of {sanitize_line(', '.join(paths) or 'no file', 200)}"
    path = sanitize_line(edit.path, 200)
    if edit.content is not None:
        lines = len(edit.content.splitlines())
        return f"{path}: write {lines} line{'' if lines == 1 else 's'}"
    return sanitize_line(f"{path}: replace {quoted(edit.find or '')} with {quoted(edit.replace or '')}")


class ScratchpadView(Struct, frozen=True):
    """Notes of `task` (None: no task); `text` is the unsanitized text for editing."""

    title: str
    task: TaskId | None
    text: str
    entries: tuple[Entry, ...]
    empty: str


def view_scratchpad(state: SessionState, selected: str = "") -> ScratchpadView:
    """Return the notes of the running task, else of the one selected in the plan."""
    task = state.run.task if state.run is not None and state.unfinished else _selected(state, selected)
    if task is None and state.run is not None:
        task = state.run.task
    if task is None:
        return ScratchpadView("Scratchpad", None, "", (), "the notes of a task appear here once it runs")
    text = state.scratchpad(task)
    empty = "no notes yet: the model adds them with `note`, you with i"
    return ScratchpadView(f"Scratchpad · {task}", task, text, _note_entries(text), empty)


def _selected(state: SessionState, selected: str) -> TaskId | None:
    return next((task.id for task in state.plan.tasks if task.id == selected), None)


def _note_entries(text: str) -> tuple[Entry, ...]:
    lines = sanitize(text).rstrip("\n").split("\n") if text.strip() else []
    return tuple(Entry(str(number), (Block(line, _line_tone(line)),)) for number, line in enumerate(lines))


def _line_tone(line: str) -> Tone:
    return Tone.TITLE if line.startswith("#") else Tone.PLAIN


def labels_text(task: Task) -> str:
    """Return kind of work, service and needs, empty for a task that has none of them."""
    machine = "GPU" if task.needs.gpu_vram_gb else "CPU only" if task.intent is not None else ""
    kind = "research: changes nothing" if task.changes_nothing else str(task.intent or "")
    return " · ".join(
        filter(None, (kind, sanitize_line(task.service, 40), machine, sanitize_line(needs_text(task.needs))))
    )


def estimate_text(estimate: Estimate | None) -> str:
    """Return the medians with their quartiles, and of how many tasks they are."""
    if estimate is None:
        return UNKNOWN
    figures = [_spread("step", estimate.steps), _spread("token", estimate.tokens), _minutes(estimate.minutes)]
    if estimate.dollars.high:
        low, high = dollars_text(estimate.dollars.low), dollars_text(estimate.dollars.high)
        figures.append(dollars_text(estimate.dollars.median) + (f" ({low}–{high})" if low != high else ""))
    kind = f"{estimate.intent} task" if estimate.intent is not None else "task"
    few = ", which is few" if estimate.samples < FEW else ""
    return f"about {', '.join(figures)}; from {counted_text(estimate.samples, kind)}{few}"


def plan_complexity(plan: ProposedPlan) -> Complexity:
    """Return the complexity of the taken tasks together."""
    return max((plan.complexity(task) for task in plan.taken), key=RANK.index, default=Complexity.SIMPLE)


def ready_first(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Return the tasks that can begin at once, and those that wait for others."""
    return tuple(each for each in tasks if not each.depends_on), tuple(each for each in tasks if each.depends_on)


def summary_text(plan: ProposedPlan) -> str:
    """Return the whole plan in one line."""
    ready, waiting = ready_first(plan.taken)
    known = [each.estimate for each in plan.tasks if each.taken and each.estimate is not None]
    labelled = any(task.intent is not None for task in plan.taken)
    gpu = sum(bool(task.needs.gpu_vram_gb) for task in plan.taken)
    machines = f"{gpu} on a GPU" if gpu else "CPU only"
    paid = "paid endpoints may be needed" if plan.paid else "no paid endpoint"
    return " · ".join(
        filter(
            None,
            (
                f"{counted_text(len(plan.taken), 'task')}: {len(ready)} ready"
                + (f", {len(waiting)} waiting" if waiting else ""),
                *((machines, str(plan_complexity(plan))) if labelled else ()),
                total_text(known) if known else UNKNOWN,
                paid if labelled else "",
            ),
        )
    )


def total_text(estimates: Iterable[Estimate]) -> str:
    """Return the sums of the medians."""
    known = tuple(estimates)
    steps, tokens = (sum(each.steps.median for each in known), sum(each.tokens.median for each in known))
    minutes, dollars = (sum(each.minutes.median for each in known), sum(each.dollars.median for each in known))
    told = [
        f"{steps:,.0f} steps",
        f"{tokens:,.0f} tokens",
        f"{minutes:.1f} min",
        *([dollars_text(dollars)] if dollars else []),
    ]
    return f"about {', '.join(told)}"


def _spread(noun: str, spread: Spread) -> str:
    between = f" ({spread.low:,.0f}–{spread.high:,.0f})" if spread.low != spread.high else ""
    return f"{counted_text(round(spread.median), noun)}{between}"


def _minutes(spread: Spread) -> str:
    between = f" ({spread.low:.1f}–{spread.high:.1f})" if spread.low != spread.high else ""
    return f"{spread.median:.1f} min{between}"
