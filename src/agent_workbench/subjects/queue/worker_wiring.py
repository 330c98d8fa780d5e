"""Wiring of workers: their states and results, the fleet that shares their queue, spending, and past answers."""

from typing import TYPE_CHECKING

from agent_workbench.bootstrap.database import repository_key, shared_database

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_workbench.adapters.llama_cpp.priced_model import SpendingLedger
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.events import ModelAnswered
    from agent_workbench.core.ids import TaskId
    from agent_workbench.core.ports.shared_state import WorkerRegistry
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.queue.outbox_adapter import ReportOutbox
    from agent_workbench.subjects.queue.worker_files_adapter import WorkerFiles


EMBEDDED = "embedded llama.cpp"
"""Endpoint that answers of our own server for a model file have."""


def worker_files(repo: "RepoContext", project: str) -> "WorkerFiles":
    """Return the states of the living workers of a project."""
    from agent_workbench.subjects.queue.worker_files_adapter import WorkerFiles
    from agent_workbench.system.user_dirs import repo_key, state_dir

    return WorkerFiles(state_dir() / "workers" / repo_key(str(repo.root)) / project)


def report_outbox(repo: "RepoContext", project: str) -> "ReportOutbox":
    """Return the results of a project's tasks that are still to be reported."""
    from agent_workbench.subjects.queue.outbox_adapter import ReportOutbox
    from agent_workbench.system.user_dirs import repo_key, state_dir

    return ReportOutbox(state_dir() / "reports" / repo_key(str(repo.root)) / project)


def spending() -> "SpendingLedger":
    """Return the ledger of what paid endpoints cost each day."""
    from agent_workbench.adapters.llama_cpp.priced_model import SpendingLedger
    from agent_workbench.system.user_dirs import state_dir

    return SpendingLedger(state_dir())


def task_commits(repo: "RepoContext", settings: "Settings") -> "Callable[[TaskId], Awaitable[str]] | None":
    """Return what tells the commit that the git remote has of a task; None without a remote."""
    from agent_workbench.bootstrap.database import session_refs

    return session_refs(repo, settings).task_commit if settings.database.remote else None


async def worker_registry(repo: "RepoContext", settings: "Settings", project: str) -> "WorkerRegistry":
    """Return the registered workers of a project's queue in the shared database; raise `ConfigError`, `RepoError`."""
    from agent_workbench.adapters.database.registry import DatabaseRegistry

    return DatabaseRegistry(shared_database(repo, settings.database), await repository_key(repo), project)


async def worker_names(repo: "RepoContext", project: str) -> "WorkerFiles":
    """Return the names that living workers of this machine have in a project's queue, of whichever clone they are."""
    from agent_workbench.subjects.queue.worker_files_adapter import WorkerFiles
    from agent_workbench.system.user_dirs import state_dir

    return WorkerFiles(state_dir() / "workers" / await repository_key(repo) / project)


def recorded_answers(repo: "RepoContext", settings: "Settings") -> "Sequence[ModelAnswered]":
    """Return the answers of models in this repository's newest sessions, the oldest first. Blocks."""
    from agent_workbench.adapters.journal.session_list import past_answers

    return tuple(past_answers(repo.sessions_dir(settings)))[::-1]
