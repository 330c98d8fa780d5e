"""`agent worker add` and `agent worker check`, and the flags that say which queue is meant."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.cli.options import add_verb, overrides
from agent_workbench.cli.output import say, say_aside
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text, quoted

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs
    from agent_workbench.core.plan import Task
    from agent_workbench.subjects.queue.calls import QueuePlace


STANDARD_INPUT = "-"
SUFFIXES = (".yaml", ".yml")


def configure_add(below: "Verbs") -> None:
    """Add `agent worker add`."""
    verb = add_verb(below, "add", "put a task into the queue", add)
    verb.add_argument("task", metavar='"WORDS"|FILE|-', help="a task in your words, a YAML file, or standard input")
    add_place_flags(verb)


def configure_check(below: "Verbs") -> None:
    """Add `agent worker check`."""
    verb = add_verb(below, "check", "check a queue file and show the task with its bounds", check)
    verb.add_argument("file", metavar="FILE|-", help="a YAML file, or standard input")
    add_place_flags(verb)


def add(options: argparse.Namespace) -> int:
    """Queue one task; print its id and its file, or its state if the queue has it already."""
    from agent_workbench.subjects.queue.calls import again_text, known_text, queue_text, queue_words

    said, invocation, place = options.task, worker_invocation(options), queue_place(options)
    if _is_document(said):
        data = _read(said)
        added = asyncio.run(queue_text(invocation, data, _name(said), place))
    else:
        added = asyncio.run(queue_words(invocation, said, place, say_aside))
    if added.known is not None:
        say(f"{known_text(added.known)}: nothing was added to {added.path}")
        say_aside(f"  {'note':<10} {again_text(added.known)}")
        return ExitCode.DONE
    say(f"{added.task.id}  {added.path}")
    for line in _told(added.task):
        say_aside(f"  {line}")
    for remark in added.remarks:
        say_aside(f"  note       {' '.join(remark.split())}")
    return ExitCode.DONE


def check(options: argparse.Namespace) -> int:
    """Read a queue file strictly; a fault is an error with file, line and what was expected."""
    from agent_workbench.subjects.queue.calls import check_queue_file

    data = _read(options.file)
    task = asyncio.run(check_queue_file(worker_invocation(options), data, _name(options.file, whole=True)))
    say(f"{task.id}: {' '.join(task.description.split())}")
    for line in _told(task):
        say(f"  {line}")
    return ExitCode.DONE


def _is_document(said: str) -> bool:
    """Return True for a file or standard input; raise `UsageError` for one word, which may be a misspelled file."""
    if said == STANDARD_INPUT or said.endswith(SUFFIXES):
        return True
    if len(said.split()) < 2:
        if said and Path(said).exists():
            return True
        raise UsageError(
            f"{quoted(said)} is one word, and no task", advice='put a task in quotes ("fix the …"), or name a YAML file'
        )
    return False


def _read(said: str) -> bytes:
    from agent_workbench.subjects.queue.calls import MAX_BYTES, read_queue_file

    if said == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    return asyncio.run(read_queue_file(Path(said)))


def _name(said: str, *, whole: bool = False) -> str:
    """Return the name of a document, for its faults and as the source of the task's id."""
    from agent_workbench.subjects.queue.calls import INPUT_NAME

    if said == STANDARD_INPUT:
        return INPUT_NAME
    return said if whole else Path(said).name


def queue_place(options: argparse.Namespace) -> "QueuePlace":
    """Return the queue that the options name."""
    from agent_workbench.subjects.queue.calls import QueuePlace

    place = QueuePlace(folder=getattr(options, "queue", None))
    return replace(place, project=options.project) if hasattr(options, "project") else place


def _told(task: "Task") -> list[str]:
    """Return the bounds, edits and commands of a task, a line each, below their labels."""
    from agent_workbench.views.plan import edit_lines

    limits, budget = task.constraints, task.budget
    bounds = (
        counted_text(limits.max_files_changed, "file") if limits.max_files_changed is not None else "",
        f"{limits.max_diff_bytes:,} bytes of diff" if limits.max_diff_bytes is not None else "",
        f"{limits.timeout_seconds:g} s for a command" if limits.timeout_seconds is not None else "",
        f"{budget.minutes:g} minutes" if budget.minutes is not None else "",
    )
    labelled = (
        ("goal", [" ".join(task.goal.split())]),
        ("may write", ["  ".join(task.scope.allowed_write_globs)]),
        ("may read", ["  ".join(task.scope.allowed_read_globs)]),
        ("at most", [", ".join(filter(None, bounds))]),
        ("denied", ["  ".join(limits.denylisted_commands)]),
        ("edit", edit_lines(task)),
        ("must pass", [f"$ {each}" for each in task.accept_tests]),
        ("source", [task.source]),
    )
    return [f"{label:<10} {text}" for label, texts in labelled for text in texts if text]


def add_place_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags that say which queue of which repository is meant."""
    # A verb below `worker` must not overwrite what was said before its name.
    verb.add_argument("--project", metavar="NAME", default=argparse.SUPPRESS, help="queue tasks/queue/NAME")
    verb.add_argument("--repo", metavar="PATH", type=Path, default=argparse.SUPPRESS, help="repository to work in")
    verb.add_argument(
        "--queue", metavar="FOLDER", type=Path, default=argparse.SUPPRESS, help="folder of the projects' queues"
    )


def worker_invocation(options: argparse.Namespace) -> Invocation:
    """Return the invocation for the repository, policy and model that the options name."""
    folder = Path.cwd() / getattr(options, "repo", "")
    return Invocation(
        folder,
        os.environ,
        overrides(options),
        policy=getattr(options, "policy", None),
        unconfined=getattr(options, "unconfined", False),
    )
