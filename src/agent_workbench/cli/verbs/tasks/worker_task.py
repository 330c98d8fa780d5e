"""`agent worker withdraw` and `agent worker resume`: take a queued task back, and free one that was lost too often."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.output import say
from agent_workbench.cli.verbs.tasks.worker_add import queue_place
from agent_workbench.cli.verbs.tasks.worker_place import add_place_flags, worker_invocation
from agent_workbench.core.errors import ExitCode

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def configure_withdraw(below: "Verbs") -> None:
    """Add `agent worker withdraw`."""
    verb = add_verb(below, "withdraw", "take a task back that has not ended; its session stays", withdraw)
    verb.add_argument("task", metavar="TASK", help="the task's id")
    verb.add_argument("--reason", metavar="TEXT", default="it was withdrawn", help="why, for whoever looks back")
    add_place_flags(verb)


def configure_resume(below: "Verbs") -> None:
    """Add `agent worker resume`."""
    verb = add_verb(below, "resume", "free a parked task, such as one that three workers lost", resume)
    verb.add_argument("task", metavar="TASK", help="the task's id")
    add_place_flags(verb)


def withdraw(options: argparse.Namespace) -> int:
    """Withdraw a task; 1 if it ended before."""
    from agent_workbench.api.task_queue import withdraw_task

    taken = asyncio.run(withdraw_task(worker_invocation(options), options.task, options.reason, queue_place(options)))
    say(f"{options.task} is withdrawn" if taken else f"{options.task} has ended; nothing changed")
    return ExitCode.DONE if taken else ExitCode.FAILED


def resume(options: argparse.Namespace) -> int:
    """Free a parked task."""
    from agent_workbench.api.task_queue import resume_task

    state = asyncio.run(resume_task(worker_invocation(options), options.task, queue_place(options)))
    say(f"{options.task} is {state}")
    return ExitCode.DONE
