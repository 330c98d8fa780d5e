"""Wiring of the database that machines share, and of signatures: this machine's key, and whose count."""

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import KEYS
from agent_workbench.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_workbench.adapters.database.audit import DatabaseAuditIndex
    from agent_workbench.adapters.database.connection import Database
    from agent_workbench.adapters.database.postgres_queue import PostgresQueue
    from agent_workbench.adapters.ssh_signatures import SshSignatures
    from agent_workbench.bootstrap.shared_resources import SharingRepo
    from agent_workbench.core.ids import TaskId
    from agent_workbench.core.ports.audit_index import AuditProofs
    from agent_workbench.core.ports.model import Spending
    from agent_workbench.core.ports.shared_state import SessionRefs
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.ports.task_queue import QueuedTask
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.settings.worker import DatabaseSettings
    from agent_workbench.core.task_estimates import Needs


ALLOWED = "allowed_signers"


def shared_database(repo: "SharingRepo", settings: "DatabaseSettings") -> "Database":
    """Return the database that the settings name, one for each process; raise `ConfigError` if it has no address.

    Nothing is connected yet. `RepoContext.shared` closes it.
    """
    address = repo.invocation.environ.get(settings.url_env, "").strip()
    if not address:
        raise ConfigError(
            f"the address of the database is missing: the variable {settings.url_env} is empty",
            advice="put the address into it, or name another variable in database.url_env",
        )
    return repo.shared.database(address)


async def database_queue(
    repo: "SharingRepo",
    settings: "Settings",
    project: str,
    complete: "Callable[[QueuedTask], tuple[QueuedTask, Needs]] | None" = None,
) -> "PostgresQueue":
    """Return the queue of a project in the shared database; raise `ConfigError`, `RepoError`."""
    from agent_workbench.adapters.database.postgres_queue import PostgresQueue

    return PostgresQueue(
        shared_database(repo, settings.database),
        await repository_key(repo),
        project,
        shared_signatures(repo, settings.database),
        complete=complete,
        poll_seconds=settings.worker.poll_seconds,
    )


async def repository_key(repo: "SharingRepo") -> str:
    """Return the name of the repository in the database, equal in all whole clones; raise `RepoError`."""
    checkout = await repo.repository.checkout_files()
    return await asyncio.to_thread(checkout.first_commit)


def session_refs(repo: "SharingRepo", settings: "Settings") -> "SessionRefs":
    """Return the refs of sessions at the git remote that the settings name. Nothing is read or connected yet."""

    signatures = shared_signatures(repo, settings.database)
    return repo.repository.session_refs(settings.database.remote, signatures, machine_name(settings))


def machine_name(settings: "Settings") -> str:
    """Return the name of this machine among workers: that of the settings, else its host name."""
    return settings.worker.name or socket.gethostname()


def share_tasks(repo: "SharingRepo", settings: "Settings", sessions: "SessionStore") -> None:
    """Let the repository find the commits of tasks that other machines did, once no branch here has one.

    The newest session of another machine that did a task counts; its branch and refs come as its journal names them.
    """
    if not settings.database.active or not settings.database.remote:
        return
    refs = session_refs(repo, settings)

    async def bring(task: "TaskId") -> bool:
        from agent_workbench.core.history.git_objects import git_objects

        for each in await sessions.summaries():
            if task not in each.tasks or not each.worker or each.problem:
                continue
            recorded = await sessions.read(each.id)
            branches = git_objects(recorded).branches.values()
            if any(one.task == task and one.tip not in {None, one.base} for one in branches):
                await refs.fetch(each.id, recorded)
                return True
        return False

    repo.repository.with_sharing(bring)


async def shared_audit(repo: "SharingRepo", settings: "Settings", proofs: "AuditProofs") -> "DatabaseAuditIndex":
    """Return the audit index of the repository that machines share; `proofs` judges its rows."""
    from agent_workbench.adapters.database.audit import DatabaseAuditIndex

    return DatabaseAuditIndex(shared_database(repo, settings.database), await repository_key(repo), proofs)


def shared_spending(repo: "SharingRepo", settings: "Settings") -> "Spending | None":
    """Return the ledger of the day's cap for all machines, None without a database or a paid endpoint.

    Raises `ConfigError` for a database without an address.
    """
    paid = any(not each.dollars_per_million_tokens.is_free for _, each in settings.endpoints)
    if not paid or not settings.database.active:
        return None
    from agent_workbench.adapters.database.spending import DatabaseSpending
    from agent_workbench.adapters.llama_cpp.priced_model import LocalSpending, SpendingLedger
    from agent_workbench.system.user_dirs import state_dir

    own = LocalSpending(SpendingLedger(state_dir()))
    return DatabaseSpending(shared_database(repo, settings.database), own, machine_name(settings))


def shared_signatures(repo: "SharingRepo", settings: "DatabaseSettings") -> "SshSignatures":
    """Return the signatures of this machine, one object for each process. No key is read or made yet."""
    return repo.shared.signatures(settings, lambda: _signatures(repo, settings))


def allowed_signers(settings: "DatabaseSettings") -> Path:
    """Return the file of those whose signatures count here; it need not exist."""
    from agent_workbench.system.user_dirs import config_dir

    return Path(settings.allowed_signers) if settings.allowed_signers else config_dir() / ALLOWED


def _signatures(repo: "SharingRepo", settings: "DatabaseSettings") -> "SshSignatures":
    from agent_workbench.adapters.ssh_keygen import SigningKey, SshKeygen
    from agent_workbench.adapters.ssh_signatures import SshSignatures, principal_of
    from agent_workbench.system.user_dirs import describe_user, state_dir

    keygen = SshKeygen(repo.invocation.environ, str(repo.root))
    configured = Path(settings.signing_key) if settings.signing_key else None
    key = SigningKey(keygen, configured, state_dir() / KEYS / "signing_key")
    return SshSignatures(keygen, key, allowed_signers(settings), principal_of(describe_user()))
