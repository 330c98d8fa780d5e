"""`agent merge`: brings a finished task into the branch you are on, after asking."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.saying import say
from agent_workbench.cli.tui import check_terminal
from agent_workbench.core.errors import ExitCode, WorkspaceError
from agent_workbench.core.ids import CommitId, task_id
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = add_verb(verbs, "merge", "bring a finished task's commit into the branch you are on", execute)
    verb.add_argument("task", help="the task's id, such as T-1")


def execute(options: argparse.Namespace) -> int:
    """Show what would be merged, ask, and merge."""
    task = task_id(options.task)
    check_terminal("agent merge", f"merging asks a person; `git merge agent/{task}` does it by hand")
    from agent_workbench.calls.sites import find_site

    place = Place(Path.cwd(), os.environ, {})

    async def look() -> tuple[CommitId, str]:
        repo = (await find_site(place)).repository
        commit = await repo.task_commit(task)
        if commit is None:
            advice = "`agent plan show` shows the tasks and how far each is"
            raise WorkspaceError(f"{task} has no commit that is not merged yet", advice=advice)
        if obstacles := await repo.merge_obstacles(commit):
            raise WorkspaceError(f"{task} cannot be merged: {'; '.join(obstacles)}")
        return commit, (await repo.inspect()).branch

    async def merge(commit: CommitId, branch: str) -> None:
        outcome = await (await find_site(place)).repository.merge(commit, f"Merge {task} into {branch}")
        say(f"{outcome.into} is at {outcome.commit[:10]} ({outcome.how})")

    commit, branch = asyncio.run(look())
    # Asked outside of the loop, so that Ctrl-C ends it at once.
    answer = input(f"merge {commit[:10]} ({task}) into {branch}? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        say("nothing was merged")
        return ExitCode.PARKED
    asyncio.run(merge(commit, branch))
    return ExitCode.DONE
