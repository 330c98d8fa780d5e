"""Calls about the plan, and about what the repository may do."""

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.trusted_repo import repo_or_folder, trusted_repo
from agent_workbench.bootstrap.repo_context import Say, find_repo
from agent_workbench.bootstrap.skill_folders import skill_folders
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import NO_SESSION
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.plans.plan_file import PlanFile
    from agent_workbench.config.repo_trust import RepoTrust
    from agent_workbench.core.plan import Plan, Task
    from agent_workbench.core.ports.services import Plans


class EditedPlan(Struct, frozen=True):
    """Outcome of an edit of the plan's `original` text: the new plan, or the fault that keeps it as it was.

    Without both nothing was changed.
    """

    original: str
    text: str
    plan: "Plan | None" = None
    fault: PlanError | None = None


async def set_up(invocation: Invocation) -> tuple[str, ...]:
    """Write the files that a repository begins with where they are missing; return those written."""
    return await (await find_repo(invocation)).setup.write()


async def repo_trust(invocation: Invocation) -> "RepoTrust":
    """Return what the repository at `invocation` would have run or obeyed, and the user's answer to it."""
    return await (await find_repo(invocation)).trust()


async def repo_plans(invocation: Invocation) -> "Plans":
    """Return the repo's plan file."""
    repo, settings = await trusted_repo(invocation)
    return repo.plans(settings)


async def checked_plan(invocation: Invocation) -> "Plan":
    """Return the plan; raise `PlanError` with the invocation of a fault, a skill that does not exist included.

    Skills of a repo that is not trusted count here: only their names are looked at.
    """
    repo = await find_repo(invocation)
    settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
    return await repo.plans(settings).check(await skill_folders(repo.root, settings.skills).names())


async def edit_plan(invocation: Invocation, before: "EditedPlan | None" = None) -> EditedPlan:
    """Have the user edit the plan's text, or go on with an edit that did not check; write it where it checks."""
    from agent_workbench.api.screen_services import edit_text

    repo, settings = await trusted_repo(invocation)
    plans = repo.plans(settings)
    original = before.original if before is not None else (await plans.piece(None)).text
    text = await edit_text(before.text if before is not None else original, ".yaml")
    if text == original:
        return EditedPlan(original, text)
    working = await repo.repository.taken([each.id for each in (await _tasks_of(plans))], NO_SESSION)
    try:
        await plans.replace_text(original, text, tuple(working))
        return EditedPlan(original, text, await plans.read())
    except PlanError as fault:
        return EditedPlan(original, text, fault=fault)


async def keep_plan_text(invocation: Invocation, text: str) -> str:
    """Write a text that does not check into a file beside the plan; return its name."""
    repo, settings = await trusted_repo(invocation)
    return await repo.plans(settings).keep_beside(text)


async def _tasks_of(plans: "PlanFile") -> "tuple[Task, ...]":
    """Return the tasks of the plan, none where it cannot be read: it may be what the user wants to mend."""
    try:
        return (await plans.read()).tasks
    except PlanError:
        return ()


async def planned_tasks(invocation: Invocation, goal: str, existing: "Plan", say: Say) -> "tuple[Task, ...]":
    """Ask the model for tasks that reach `goal`, and say what is waited for; raise `ModelError`."""
    from agent_workbench.engine.task.planner import make_plan

    repo, settings = await repo_or_folder(invocation, say)
    ports = await asyncio.to_thread(repo.ports, settings, say)
    try:
        files = await repo.repository.list_tracked()
        seconds, chosen = settings.model.answer_seconds, settings.sampling.planner
        return await make_plan(ports.model, ports.redacted(goal), files, existing, seconds, chosen)
    finally:
        await ports.model.close()
