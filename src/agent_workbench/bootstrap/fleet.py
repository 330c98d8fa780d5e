"""Wiring of a worker to the fleet that shares its queue: registry and recorded answers."""

from typing import TYPE_CHECKING

from agent_workbench.bootstrap.database import repository_key, shared_database

if TYPE_CHECKING:  # loaded by the verbs that need them
    from collections.abc import Sequence

    from agent_workbench.adapters.queue.worker_files import WorkerFiles
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.events import ModelAnswered
    from agent_workbench.core.ports.shared_state import WorkerRegistry
    from agent_workbench.core.settings import Settings

EMBEDDED = "embedded llama.cpp"
"""Endpoint that answers of our own server for a model file have."""


async def worker_registry(repo: "RepoContext", settings: "Settings", project: str) -> "WorkerRegistry":
    """Return the registered workers of a project's queue in the shared database; raise `ConfigError`, `RepoError`."""
    from agent_workbench.adapters.database.registry import DatabaseRegistry

    return DatabaseRegistry(shared_database(repo, settings.database), await repository_key(repo), project)


async def worker_names(repo: "RepoContext", project: str) -> "WorkerFiles":
    """Return the names that living workers of this machine have in a project's queue, of whichever clone they are."""
    from agent_workbench.adapters.queue.worker_files import WorkerFiles
    from agent_workbench.system.user_dirs import state_dir

    return WorkerFiles(state_dir() / "workers" / await repository_key(repo) / project)


def recorded_answers(repo: "RepoContext", settings: "Settings") -> "Sequence[ModelAnswered]":
    """Return the answers of models in this repository's newest sessions, the oldest first. Blocks."""
    from agent_workbench.adapters.journal.past_events import past_answers

    return tuple(past_answers(repo.sessions_dir(settings)))[::-1]
