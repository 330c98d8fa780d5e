"""`agent plan`: list, check and extend the plan, and dispatch, follow or cancel its queued tasks."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import NEW_SUMMARY, add_verb
from agent_workbench.cli.output import say, say_aside
from agent_workbench.cli.verbs.plan_new import configure_new, new_tasks
from agent_workbench.core.errors import ExitCode, PlanError, UsageError
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.plan import Plan, Task, TaskStatus, check_plan, next_id
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs
    from agent_workbench.subjects.dispatch.preparation import Dispatch
    from agent_workbench.subjects.dispatch.progress import Cancelled, PlanProgress


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=show)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    add_verb(below, "show", "print the tasks and their status", show)
    add_verb(below, "check", "check the plan and print its faults", check)
    adding = add_verb(below, "add", "append a task", add_task)
    adding.add_argument("description", metavar='"WORDS"', help="what is to be done, in quotes")
    adding.add_argument("--goal", default="", help="how to see that it is done")
    adding.add_argument("--accept", action="append", default=[], metavar="COMMAND", help="a command that must pass")
    adding.add_argument("--after", action="append", default=[], metavar="ID", help="a task it depends on")
    add_verb(below, "edit", "open the plan in your editor and check it afterwards", edit)
    configure_new(add_verb(below, "new", NEW_SUMMARY, new_tasks))
    configure_work(below)


def show(_: argparse.Namespace) -> int:
    """Print the plan."""
    from agent_workbench.api.plans import plan_status

    status = asyncio.run(plan_status(Invocation(Path.cwd(), os.environ, {})))
    plan = status.plan
    if plan.goal:
        say(plan.goal)
    for task in plan.tasks:
        _print(task, plan, status.states[task.id])
    if not plan.tasks:
        say('the plan has no tasks; `agent plan add "…"` appends one')
    return ExitCode.DONE


def check(_: argparse.Namespace) -> int:
    """Read the plan strictly; a fault is an error with file and line."""
    from agent_workbench.api.plans import checked_plan

    plan = asyncio.run(checked_plan(Invocation(Path.cwd(), os.environ, {})))
    say(f"the plan is valid: {counted_text(len(plan.tasks), 'task')}")
    return ExitCode.DONE


def edit(_: argparse.Namespace) -> int:
    """Open the plan in the user's editor, again if it is invalid and the user agrees."""
    from agent_workbench.api.plans import edit_plan

    invocation = Invocation(Path.cwd(), os.environ, {})
    edited = asyncio.run(edit_plan(invocation))
    while edited.fault is not None:
        # Asked outside of the event loop, so that Ctrl-C ends it at once.
        try:
            again = _mended(str(edited.fault))
        except KeyboardInterrupt:
            say_aside(f"\n{_kept(invocation, edited.text)}")
            raise
        if not again:
            advice = "; ".join(filter(None, (edited.fault.advice, _kept(invocation, edited.text))))
            raise PlanError(str(edited.fault), advice=advice) from edited.fault
        edited = asyncio.run(edit_plan(invocation, edited))
    plan = edited.plan
    say("nothing was changed" if plan is None else f"the plan is valid: {counted_text(len(plan.tasks), 'task')}")
    return ExitCode.DONE


def _kept(invocation: Invocation, text: str) -> str:
    """Store a text that the user gave up, and return a message about it."""
    from agent_workbench.api.plans import keep_plan_text

    return f"the plan is unchanged; your text is kept in {asyncio.run(keep_plan_text(invocation, text))}"


def _mended(fault: str) -> bool:
    say_aside(fault)
    return _agreed("edit it again? [y/N] ")


def add_task(options: argparse.Namespace) -> int:
    """Append a task. Of a prompt that is called the first line describes it, the others are its goal."""
    from agent_workbench.api.plans import called_words

    if not options.description.strip():
        raise UsageError("the description of the task is empty", advice="describe what to do")
    if not all(command.strip() for command in options.accept):
        raise UsageError("an acceptance command is empty", advice="omit --accept if there is none")
    plan = _read()
    after = tuple(task_id(each) for each in options.after)
    words = asyncio.run(called_words(Invocation(Path.cwd(), os.environ, {}), options.description))
    first, _, rest = words.partition("\n") if words != options.description else (words, "", "")
    goal = options.goal or rest.strip()
    task = Task(next_id(plan.tasks), first, goal, accept_tests=tuple(options.accept), depends_on=after)
    _append((task,), plan)
    _print(task, plan, task.status)
    return ExitCode.DONE


def _agreed(question: str) -> bool:
    try:
        return sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _read() -> Plan:
    from agent_workbench.api.plans import repo_plans

    async def read() -> Plan:
        plans = await repo_plans(Invocation(Path.cwd(), os.environ, {}))
        return await plans.read()

    return asyncio.run(read())


def _append(tasks: tuple[Task, ...], plan: Plan) -> None:
    from agent_workbench.api.plans import repo_plans

    if problems := check_plan(Plan((*plan.tasks, *tasks))):
        raise PlanError("; ".join(problems))

    async def append() -> None:
        plans = await repo_plans(Invocation(Path.cwd(), os.environ, {}))
        await plans.add(tasks)

    asyncio.run(append())


def _print(task: Task, plan: Plan, state: str) -> None:
    from agent_workbench.views.plan import edit_lines

    waiting = plan.waits_for(task)
    after = f"  (after {', '.join(waiting)})" if waiting else ""
    say(f"{task.id:<6} {state:<12} {' '.join(task.description.split())}{after}")
    for line in edit_lines(task):
        say(f"{'':<20}edit {line}")
    for command in task.accept_tests:
        say(f"{'':<20}$ {command}")
    if task.status is TaskStatus.FAILED:
        say(f"{'':<20}`agent run -t {task.id}` starts it again")


def configure_work(below: "Verbs") -> None:
    """Add the verbs."""
    dispatch = add_verb(
        below, "dispatch", "put approved tasks into the queue of the workers, each once", dispatch_tasks
    )
    dispatch.add_argument("tasks", nargs="*", metavar="TASK", help="these tasks alone, also such that failed")
    dispatch.add_argument("--yes", action="store_true", help="also what nobody approved yet, or no worker can do now")
    dispatch.add_argument("--json", action="store_true", help="print what was queued as JSON")
    status = add_verb(
        below, "status", "show how the tasks stand: queued, running, parked, done, and their cost", show_status
    )
    status.add_argument("--json", action="store_true", help="print it as JSON")
    cancel = add_verb(below, "cancel", "take tasks back from the queue; what runs is stopped", cancel_tasks)
    cancel.add_argument("tasks", nargs="*", metavar="TASK", help="these tasks")
    cancel.add_argument("--all", action="store_true", help="all tasks that are queued or running")
    cancel.add_argument("--reason", default="", help="why; it stands in the plan and in the journal")
    cancel.add_argument("--json", action="store_true", help="print what was taken back as JSON")


def dispatch_tasks(options: argparse.Namespace) -> int:
    """Queue the tasks that a person approved. What nobody approved, or nobody can do, is asked about first."""
    from agent_workbench.subjects.dispatch.view import dispatch_lines

    wanted = tuple(map(task_id, options.tasks))
    shown = asyncio.run(_prepare(wanted))
    agreed = options.yes or not (shown.unapproved or shown.unmet)
    if not agreed and not options.json:
        for line in dispatch_lines(shown):
            say(line)
        agreed = _agreed("queue all of it nevertheless? [y/N] ")
    if agreed and shown.tasks:
        shown = asyncio.run(_dispatch(shown, wanted))
    _print_dispatch(shown, queued=agreed, as_json=options.json)
    return ExitCode.DONE if agreed else ExitCode.PARKED


def show_status(options: argparse.Namespace) -> int:
    """Print the tree of the tasks."""
    from agent_workbench.subjects.dispatch.view import progress_document, progress_lines

    progress = asyncio.run(_progress())
    if options.json:
        say(json.dumps(progress_document(progress)))
        return ExitCode.DONE
    for line in progress_lines(progress):
        say(line)
    if not progress.tasks:
        say(
            'the plan has no tasks; `agent plan new "…"` asks the model for some, `agent inbox` shows a plan that waits'
        )
    return ExitCode.DONE


def cancel_tasks(options: argparse.Namespace) -> int:
    """Take tasks back; they are blocked in the plan then."""
    if bool(options.tasks) == options.all:
        raise UsageError("name the tasks to take back, or say --all", advice="`agent plan status` shows them")
    done = asyncio.run(_cancel(tuple(map(task_id, options.tasks)), options.reason))
    if options.json:
        left = [{"task": each.task, "reason": each.text} for each in done.left]
        say(json.dumps({"cancelled": list(done.tasks), "left": left}))
        return ExitCode.DONE
    say(f"taken back: {', '.join(done.tasks)}" if done.tasks else "nothing was taken back")
    for each in done.left:
        say(f"{each.task}: {each.text}")
    return ExitCode.DONE


def _print_dispatch(shown: "Dispatch", *, queued: bool, as_json: bool) -> None:
    if as_json:
        tasks = [
            {
                "id": each.task.id,
                "name": each.name,
                "depends_on": list(each.definition.depends_on),
                "approved": each.approval.plan if each.approval is not None else None,
                "by": each.approval.by if each.approval is not None else None,
            }
            for each in shown.tasks
        ]
        remarks = {
            "left": [{"task": each.task, "reason": each.text} for each in shown.left],
            "unmet": [{"task": each.task, "reason": each.text} for each in shown.unmet],
        }
        say(json.dumps({"queued": queued, "tasks": tasks, "already_queued": list(shown.queued), **remarks}))
        return
    for each in shown.tasks if queued else ():
        after = f"  (after {', '.join(each.definition.depends_on)})" if each.definition.depends_on else ""
        say(f"{each.task.id} is queued as {each.name}{after}")
    if shown.queued:
        say(f"queued before: {', '.join(shown.queued)}")
    for remark in shown.left:
        say(f"{remark.task} is left: {remark.text}")
    if not queued:
        say("nothing was queued; `agent plan dispatch --yes` queues all of it")
    elif shown.tasks:
        say_aside(
            "`agent worker --watch` does them, here or on any machine of the queue; `agent plan status` shows how"
        )
    elif not shown.queued and not shown.left:
        say("no approved task is left to queue; `agent inbox` shows a plan that waits for approval")


async def _prepare(wanted: Sequence[TaskId]) -> "Dispatch":
    from agent_workbench.subjects.dispatch.calls import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        return await work.prepare(wanted)


async def _dispatch(shown: "Dispatch", wanted: Sequence[TaskId]) -> "Dispatch":
    from agent_workbench.subjects.dispatch.calls import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        return await work.dispatch(shown, wanted)


async def _progress() -> "PlanProgress":
    from agent_workbench.subjects.dispatch.calls import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        progress = await work.progress()
        if progress.unsettled:
            await work.settle()
        return progress


async def _cancel(wanted: Sequence[TaskId], reason: str) -> "Cancelled":
    from agent_workbench.subjects.dispatch.calls import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        return await work.cancel(wanted, reason)


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})
