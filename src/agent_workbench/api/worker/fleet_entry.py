"""Entry of a worker into the fleet that shares its queue, where a database is set."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.worker.membership import Membership, MembershipParts
from agent_workbench.api.worker.outages import Pauses
from agent_workbench.api.worker.served_models import ServedModels, WorkerEndpoint
from agent_workbench.api.worker.worker_log import WorkerLog
from agent_workbench.core.diagnostics.endpoints import endpoint_lines
from agent_workbench.core.queue.workers import WorkerRecord
from agent_workbench.core.settings.models import SHORT_FORM

if TYPE_CHECKING:  # loaded by the worker
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.settings import Settings


class FleetEntry(Struct, frozen=True):
    """Parts of a worker that enters a fleet. `instance` is another text for each process."""

    instance: str
    most_jobs: int
    pauses: Pauses
    log: WorkerLog


async def enter_fleet(repo: "RepoContext", settings: "Settings", project: str, entry: FleetEntry) -> Membership:
    """Register a worker and return its membership; raise `ConfigError`, `RepoError`.

    A database that is away does not keep it from starting.
    """
    from agent_workbench.bootstrap.database import machine_name
    from agent_workbench.bootstrap.fleet import recorded_answers, worker_names, worker_registry
    from agent_workbench.bootstrap.machine import local_machine

    names = await worker_names(repo, project)
    name = await asyncio.to_thread(names.take_name, machine_name(settings))
    worker = WorkerRecord(name, instance=entry.instance, tags=settings.worker.tags, most_jobs=entry.most_jobs)
    endpoints = await asyncio.to_thread(repo.endpoints, settings, lambda _: None)
    known = await asyncio.to_thread(lambda: tuple(worker_endpoints(settings, repo.invocation.environ)))
    past = partial(recorded_answers, repo, settings)
    models = ServedModels(known, endpoints.looked_at, endpoints.close, past)
    registry = await worker_registry(repo, settings, project)
    machine = local_machine(repo.invocation.environ, repo.root)
    parts = MembershipParts(registry, machine, models, settings.worker, entry.pauses, entry.log, names.end)
    membership = Membership(parts, worker)
    await membership.begin()
    return membership


def worker_endpoints(settings: "Settings", environ: Mapping[str, str]) -> Iterator[WorkerEndpoint]:
    """Yield the endpoints of all roles that this machine could use; those without their key or file are left out."""
    from agent_workbench.bootstrap.fleet import EMBEDDED

    for line in {each.name: each for each in endpoint_lines(settings, environ)}.values():
        is_file = not line.where.startswith(("http://", "https://"))
        if (line.key_variable and not line.key_set) or not line.where:
            continue
        if not line.price.is_free:
            yield WorkerEndpoint(line.name, model=line.name)
        elif not is_file:
            yield WorkerEndpoint(line.name)
        elif Path(line.where).expanduser().is_file():
            label = EMBEDDED if line.name == SHORT_FORM else f"{line.name} ({EMBEDDED})"
            yield WorkerEndpoint(line.name, label, Path(line.where).name)
