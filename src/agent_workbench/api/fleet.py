"""The fleet of a queue for a person: its workers, orders to one of them, and needs that none of them meets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import database_advice, trusted_repo
from agent_workbench.bootstrap.fleet import worker_registry
from agent_workbench.bootstrap.task_queue import DEFAULT_PROJECT
from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.plan.needs import Needs
from agent_workbench.core.queue.routing import unmet_needs
from agent_workbench.core.queue.workers import Fleet

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ports.shared_state import WorkerRegistry
    from agent_workbench.core.settings import Settings


async def registered_fleet(invocation: Invocation, project: str) -> Fleet:
    """Return the registered workers of a project; raise `UsageError` without a database, `StorageError`."""
    async with _registry(invocation, project) as registry:
        return await registry.fleet()


async def drain_worker(invocation: Invocation, project: str, name: str, *, draining: bool) -> None:
    """Order a worker to take nothing new, or to take tasks again; raise `UsageError`, `TrustError`, `StorageError`."""
    async with _registry(invocation, project) as registry:
        await registry.drain(name, draining=draining)


async def remove_worker(invocation: Invocation, project: str, name: str) -> None:
    """Remove an offline worker; raise `UsageError`, `LockedError` for a living one, `TrustError`, `StorageError`."""
    async with _registry(invocation, project) as registry:
        await registry.remove(name)


async def needs_problem(repo: "RepoContext", settings: "Settings", project: str, needs: Needs) -> str:
    """Return why no registered worker meets the needs of a task; empty if one does, or if there are none.

    Where it cannot be known, because no database is set or it is away, that is said too.
    """
    if needs == Needs():
        return ""
    if not settings.database.active:
        return "its needs count for workers that share a database, and none is set (database.url_env)"
    try:
        fleet = await (await worker_registry(repo, settings, project or DEFAULT_PROJECT)).fleet()
    except StorageError as error:
        return f"its needs could not be compared with the workers: {error}"
    return unmet_needs(needs, fleet.workers)


@asynccontextmanager
async def _registry(invocation: Invocation, project: str) -> "AsyncIterator[WorkerRegistry]":
    repo, settings = await trusted_repo(invocation)
    if not settings.database.active:
        advice = "set database.url_env; `agent worker status` shows the workers of this machine"
        raise UsageError("no database is set, so no workers are registered", advice=await database_advice(repo, advice))
    try:
        yield await worker_registry(repo, settings, project or DEFAULT_PROJECT)
    finally:
        await repo.shared.close()
