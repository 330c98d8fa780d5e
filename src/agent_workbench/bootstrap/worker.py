"""Wiring of what workers of a queue share: their states, and the results that are still to be reported."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded by the verbs that need them
    from collections.abc import Awaitable, Callable

    from agent_workbench.adapters.llama_cpp.routing.spending_ledger import SpendingLedger
    from agent_workbench.adapters.queue.report_outbox import ReportOutbox
    from agent_workbench.adapters.queue.worker_files import WorkerFiles
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ids import TaskId
    from agent_workbench.core.settings import Settings


def worker_files(repo: "RepoContext", project: str) -> "WorkerFiles":
    """Return the states of the living workers of a project."""
    from agent_workbench.adapters.queue.worker_files import WorkerFiles
    from agent_workbench.system.user_dirs import repo_key, state_dir

    return WorkerFiles(state_dir() / "workers" / repo_key(str(repo.root)) / project)


def report_outbox(repo: "RepoContext", project: str) -> "ReportOutbox":
    """Return the results of a project's tasks that are still to be reported."""
    from agent_workbench.adapters.queue.report_outbox import ReportOutbox
    from agent_workbench.system.user_dirs import repo_key, state_dir

    return ReportOutbox(state_dir() / "reports" / repo_key(str(repo.root)) / project)


def spending() -> "SpendingLedger":
    """Return the ledger of what paid endpoints cost each day."""
    from agent_workbench.adapters.llama_cpp.routing.spending_ledger import SpendingLedger
    from agent_workbench.system.user_dirs import state_dir

    return SpendingLedger(state_dir())


def task_commits(repo: "RepoContext", settings: "Settings") -> "Callable[[TaskId], Awaitable[str]] | None":
    """Return what tells the commit that the git remote has of a task; None without a remote."""
    from agent_workbench.bootstrap.database import session_refs

    return session_refs(repo, settings).task_commit if settings.database.remote else None
