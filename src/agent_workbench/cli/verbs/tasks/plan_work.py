"""`agent plan dispatch|status|cancel`: the tasks of the plan in the queue."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.output import say, say_aside
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs
    from agent_workbench.core.dispatch.preparation import Dispatch
    from agent_workbench.core.dispatch.progress import Cancelled, PlanProgress


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
    from agent_workbench.views.plan_estimates import dispatch_lines

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
    from agent_workbench.views.reports.plan_progress import progress_document, progress_lines

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
    from agent_workbench.api.dispatch.plan_work import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        return await work.prepare(wanted)


async def _dispatch(shown: "Dispatch", wanted: Sequence[TaskId]) -> "Dispatch":
    from agent_workbench.api.dispatch.plan_work import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        return await work.dispatch(shown, wanted)


async def _progress() -> "PlanProgress":
    from agent_workbench.api.dispatch.plan_work import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        return await work.progress()


async def _cancel(wanted: Sequence[TaskId], reason: str) -> "Cancelled":
    from agent_workbench.api.dispatch.plan_work import opened_plan_work

    async with opened_plan_work(_invocation()) as work:
        return await work.cancel(wanted, reason)


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})


def _agreed(question: str) -> bool:
    try:
        return sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False
