"""Wiring of what workers of a queue share: their states, and the results that are still to be reported."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded by the verbs that need them
    from agent_workbench.adapters.llama_cpp.routing.spending_ledger import SpendingLedger
    from agent_workbench.adapters.queue.report_outbox import ReportOutbox
    from agent_workbench.adapters.queue.worker_files import WorkerFiles
    from agent_workbench.bootstrap.repo_context import RepoContext


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
