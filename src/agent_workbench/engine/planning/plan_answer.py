"""Reader of the planner's answer. It is strict: an answer that breaks the form is refused with the reason."""

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, next_id
from agent_workbench.core.task_estimates import Intent, Needs
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.yaml_documents import is_clean

MAX_TASKS = 8
MAX_LINE_CHARS = 600
LABELS = ("Task", "Intent", "Service", "Goal", "Approach", "Accept", "Needs", "After")
"""Lines of a task in their order; only the first one has to say something."""
WITH_INTENTS = 2
"""Version of the planner's texts from which on a task has an intent; one without is research."""
_LINE = re.compile(rf" *({'|'.join(LABELS)}) *:(.*)", re.DOTALL)
_NAME = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}"
_NEED = re.compile(rf"(gpu|cores|model|tag) +(\d{{1,3}}|{_NAME})(?: *GB| *GiB)?", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:(?:tasks? )?\d{1,3}(?:(?:,| and| ) ?\d{1,3})*)?", re.IGNORECASE)
_NOTHING = frozenset({"", "-", "none", "nothing", "n/a", "none.", "nothing."})


def _grammar(wording: int) -> str:
    """Return the grammar of an answer. Each task names only earlier ones as those that it comes after."""
    head = r'head ::= "Task: " text{1,160} "\nGoal: " text{1,300} "\nApproach: " text{0,300} accept'
    accept = [r'accept ::= "\nAccept: " text{0,160} "\nAfter: "']
    if wording >= WITH_INTENTS:
        head = head.replace(r' "\nGoal', r' "\nIntent: " intent "\nService: " text{0,40} "\nGoal')
        accept = [
            'intent ::= "code" | "infra" | "research"',
            r'accept ::= "\nAccept: " text{0,160} "\nNeeds: " (need (", " need){0,3})? "\nAfter: "',
            'need ::= ("gpu " | "cores ") [1-9] [0-9]{0,2} | ("model " | "tag ") name',
            "name ::= [A-Za-z0-9] [A-Za-z0-9._:/-]{0,63}",
        ]
    rules = ["root ::= t1", head, *accept, r"text ::= [^\x00-\x1F\x7F]", r't1 ::= head "\n" t2?']
    for number in range(2, MAX_TASKS + 1):
        earlier = f"[1-{number - 1}]"
        more = f" t{number + 1}?" if number < MAX_TASKS else ""
        rules.append(rf't{number} ::= head ({earlier} (", " {earlier}){{0,{MAX_TASKS - 2}}})? "\n"{more}')
    return "\n".join(rules)


GRAMMAR = _grammar(WITH_INTENTS)
_FIRST_GRAMMAR = _grammar(1)


CHECK_GRAMMAR = r"""
root ::= "Accept: " [^\x00-\x20\x7F] [^\x00-\x1F\x7F]{1,160} "\n"
"""


def plan_grammar(wording: int) -> str:
    """Return the grammar of a plan in a version of the planner's texts."""
    return GRAMMAR if wording >= WITH_INTENTS else _FIRST_GRAMMAR


def read_check(text: str) -> str:
    """Return the command in an answer to the question for a check; raise `PlanError` with the reason."""
    lines = [line for line in text.split("\n") if line.strip()]
    match = _LINE.fullmatch(lines[0].rstrip("\r")) if len(lines) == 1 else None
    if match is None or match[1] != "Accept":
        raise PlanError("it is not one line that begins with `Accept: `")
    command = match[2].strip().strip("`").strip()
    if command.lower() in _NOTHING:
        raise PlanError("it has no command")
    if not is_clean(command) or len(command) > MAX_LINE_CHARS:
        raise PlanError(f"its command has control characters, or more than {MAX_LINE_CHARS} characters")
    return command


def read_tasks(text: str, existing: Plan, wording: int = WITH_INTENTS) -> tuple[Task, ...]:
    """Return the tasks in an answer, numbered after those of the existing plan; raise `PlanError` with the reason.

    `wording` is the version of the texts that asked for it. A task without a known intent is research.
    """
    told = _split(text)
    if len(told) > MAX_TASKS:
        raise PlanError(f"it has {len(told)} tasks; at most {MAX_TASKS} are allowed")
    ids: list[TaskId] = []
    taken = existing.tasks
    for _ in told:
        ids.append(next_id(taken))
        taken = (*taken, Task(ids[-1], "-"))
    tasks = (_task(number, lines, ids) for number, lines in enumerate(told))
    if wording < WITH_INTENTS:
        return tuple(tasks)
    return tuple(_labelled(number, task, lines) for number, (task, lines) in enumerate(zip(tasks, told, strict=True)))


def _split(text: str) -> list[dict[str, str]]:
    told: list[dict[str, str]] = []
    for line in filter(str.strip, text.split("\n")):
        match = _LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            raise PlanError(f"the line {quoted(line.strip()[:80])} has none of the labels {', '.join(LABELS)}")
        label, said = match[1], match[2].strip()
        if label == LABELS[0]:
            told.append({})
        elif not told:
            raise PlanError(f"it begins with {label!r}, not with `Task: …`")
        if label in told[-1] or any(LABELS.index(each) > LABELS.index(label) for each in told[-1]):
            raise PlanError(f"task {len(told)} has its line {label!r} twice, or in the wrong place")
        if not is_clean(said):
            raise PlanError(f"the line {label!r} of task {len(told)} has control characters")
        if len(said) > MAX_LINE_CHARS:
            raise PlanError(f"the line {label!r} of task {len(told)} has {len(said)} characters, not {MAX_LINE_CHARS}")
        told[-1][label] = said
    if not told:
        raise PlanError("it has no task")
    return told


def _task(number: int, lines: Mapping[str, str], ids: Sequence[TaskId]) -> Task:
    description = lines["Task"]
    if not description:
        raise PlanError(f"task {number + 1} has no words after `Task:`")
    accept = lines.get("Accept", "").strip("`")
    return Task(
        ids[number],
        description,
        lines.get("Goal", ""),
        suggested_approach=lines.get("Approach", ""),
        accept_tests=() if accept.lower() in _NOTHING else (accept,),
        depends_on=_before(number, lines.get("After", ""), ids),
    )


def _labelled(number: int, task: Task, lines: Mapping[str, str]) -> Task:
    """Return the task with its intent, service and needs."""
    said, service = lines.get("Intent", "").lower(), lines.get("Service", "")
    intent = Intent(said) if said in set(Intent) else Intent.RESEARCH
    needs = _needs(number, lines.get("Needs", ""))
    return replace(task, intent=intent, service="" if service.lower() in _NOTHING else service, needs=needs)


def _needs(number: int, said: str) -> Needs:
    if said.lower() in _NOTHING:
        return Needs()
    numbers: dict[str, int] = {}
    names: dict[str, list[str]] = {"model": [], "tag": []}
    for each in said.split(","):
        match = _NEED.fullmatch(each.strip())
        kind = match[1].lower() if match is not None else ""
        if match is None or (kind not in names and not match[2].isdigit()):
            form = "`gpu 24`, `cores 8`, `model NAME` or `tag NAME`"
            raise PlanError(f"`Needs: {said[:60]}` of task {number + 1} is not a list of {form}")
        if kind in names:
            names[kind].append(match[2])
        else:
            numbers[kind] = int(match[2])
    vram = numbers.get("gpu")
    return Needs(
        gpu_vram_gb=float(vram) if vram else None,
        cores=numbers.get("cores") or None,
        models=tuple(dict.fromkeys(names["model"])),
        tags=tuple(dict.fromkeys(names["tag"])),
    )


def _before(number: int, said: str, ids: Sequence[TaskId]) -> tuple[TaskId, ...]:
    """Return the tasks that task `number` (from 0) needs first: only earlier ones, so that no cycle can arise."""
    if said.lower() in _NOTHING:
        return ()
    if not _NUMBERS.fullmatch(said):
        raise PlanError(f"`After: {said[:40]}` of task {number + 1} is not a list of task numbers")
    wanted = dict.fromkeys(int(each) for each in re.findall(r"\d+", said))
    if wrong := [each for each in wanted if not 1 <= each <= number]:
        raise PlanError(f"task {number + 1} comes after task {wrong[0]}, which is not before it")
    return tuple(ids[each - 1] for each in wanted)
