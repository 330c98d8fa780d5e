"""Calls about the plan, and about what the repository may do."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_workbench.bootstrap import Say
from agent_workbench.bootstrap.skills import skill_folders
from agent_workbench.calls.sites import find_site, told_site, trusted_site
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import NO_SESSION
from agent_workbench.core.place import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.plans.plan_file import PlanFile
    from agent_workbench.config.repo_trust import RepoTrust
    from agent_workbench.core.plan import Plan, Task
    from agent_workbench.core.ports import Plans


async def repo_trust(place: Place) -> "RepoTrust":
    """Return what the repository at `place` would have run or obeyed, and the user's answer to it."""
    return await (await find_site(place)).trust()


async def repo_plans(place: Place) -> "Plans":
    """Return the repo's plan file."""
    site, settings = await trusted_site(place)
    return site.plans(settings)


async def checked_plan(place: Place) -> "Plan":
    """Return the plan; raise `PlanError` with the place of a fault, a skill that does not exist included.

    Skills of a repo that is not trusted count here: only their names are looked at.
    """
    site = await find_site(place)
    settings = await asyncio.to_thread(lambda: site.settings(trusted=True))
    return await site.plans(settings).check(await skill_folders(site.root, settings.skills).names())


async def edited_plan(place: Place, edit_again: Callable[[PlanError], bool]) -> "Plan | None":
    """Have the user edit the plan's text and return the plan; None where they changed nothing.

    The plan stays as it is while the text does not check. Raises `PlanError` for a text that the user does not go on
    with: it is kept beside the plan.
    """
    from agent_workbench.calls.editing import edit_text

    site, settings = await trusted_site(place)
    plans = site.plans(settings)
    before = (await plans.piece(None)).text
    text = before
    while True:
        text = await edit_text(text, ".yaml")
        if text == before:
            return None
        working = await site.repository.taken([each.id for each in (await _tasks_of(plans))], NO_SESSION)
        try:
            await plans.replace_text(before, text, tuple(working))
            return await plans.read()
        except PlanError as fault:
            if edit_again(fault):
                continue
            kept = await plans.keep_beside(text)
            advice = f"the plan is as it was; what you wrote is kept in {kept}"
            raise PlanError(str(fault), advice="; ".join(filter(None, (fault.advice, advice)))) from fault


async def _tasks_of(plans: "PlanFile") -> "tuple[Task, ...]":
    """Return the tasks of the plan, none where it cannot be read: it may be what the user wants to mend."""
    try:
        return (await plans.read()).tasks
    except PlanError:
        return ()


async def planned_tasks(place: Place, goal: str, existing: "Plan", say: Say) -> "tuple[Task, ...]":
    """Ask the model for tasks that reach `goal`, and say what is waited for; raise `ModelError`."""
    from agent_workbench.engine.planner import make_plan

    site, settings = await told_site(place, say)
    ports = await asyncio.to_thread(site.ports, settings, say)
    try:
        files = await site.repository.list_tracked()
        seconds, chosen = settings.model.answer_seconds, settings.sampling.planner
        return await make_plan(ports.model, ports.redacted(goal), files, existing, seconds, chosen)
    finally:
        await ports.model.close()
