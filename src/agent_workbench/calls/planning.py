"""Calls about the plan, and about what the repository may do."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.bootstrap import Say
from agent_workbench.calls.sites import find_site, told_site, trusted_site
from agent_workbench.core.place import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
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
