"""Wiring of this machine's stores: sessions, rules, and decisions made in other processes."""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.core.errors import JournalError, StorageError, UsageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded by the verbs that need them
    from collections.abc import Callable

    from agent_workbench.adapters.journal.session_store import LocalSessionStore, SessionRemoval, Tombstones
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.model import ModelFacts
    from agent_workbench.core.ports.audit_index import AuditSource
    from agent_workbench.core.ports.machine import Clock
    from agent_workbench.core.ports.repo_files import RuleStore
    from agent_workbench.core.ports.stores import Inbox, SessionStore
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.task_estimates import TaskFigures
    from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex

MOST_ELSEWHERE = 100
"""Sessions of other machines that are read for the figures of their tasks."""


def session_store(
    invocation: Invocation, folder: Path, settings: "Settings", on_begin: "Callable[[], None]"
) -> "LocalSessionStore":
    """Return the sessions whose journals are in `folder`; `on_begin` is called before one is begun."""
    from agent_workbench.adapters.journal.redaction import environment_redactor
    from agent_workbench.adapters.journal.session_store import LocalSessionStore
    from agent_workbench.adapters.local_machine import SystemIds
    from agent_workbench.system.user_dirs import state_dir

    redactor = partial(environment_redactor, invocation.environ, settings.key_variables)
    return LocalSessionStore(folder, state_dir() / "sessions", SystemIds(), redactor, tombstones(), on_begin)


def new_session_id() -> "SessionId":
    """Return the id for a session that is to begin."""
    from agent_workbench.adapters.local_machine import SystemIds

    return SystemIds().session()


def audit_index(root: Path, source: "AuditSource") -> "SqliteAuditIndex":
    """Return the audit index of the repository at `root`, built from the journals of `source`. Blocks."""
    from agent_workbench.subjects.audit.file_adapter import FORMAT
    from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex
    from agent_workbench.system.user_dirs import cache_dir, repo_key

    return SqliteAuditIndex(cache_dir() / "audit" / f"{repo_key(str(root))}-{FORMAT}.sqlite", source)


def session_removal(folder: Path) -> "SessionRemoval":
    """Return the removal of the sessions whose journals are in `folder`."""
    from agent_workbench.adapters.journal.session_store import SessionRemoval
    from agent_workbench.system.user_dirs import state_dir

    return SessionRemoval(folder, state_dir() / "sessions")


def tombstones() -> "Tombstones":
    """Return the records of removed anchors and journals."""
    from agent_workbench.adapters.journal.session_store import Tombstones
    from agent_workbench.system.user_dirs import state_dir

    return Tombstones(state_dir() / "tombstones")


def rule_store(root: Path, invocation: Invocation, sessions_dir: Path) -> "RuleStore":
    """Return the store of the rules in force in the repo at `root`."""
    from agent_workbench.adapters.journal.session_list import past_actions
    from agent_workbench.adapters.rules import RuleFiles
    from agent_workbench.config.settings_loader import load_settings
    from agent_workbench.config.trust_store import RuleTrust, TrustStore
    from agent_workbench.config.yaml_parser import compose_text
    from agent_workbench.system.user_dirs import config_dir, state_dir

    load = partial(load_settings, root, invocation.environ, invocation.flags, config_dir())
    trust = RuleTrust(root, load, TrustStore(state_dir()))
    return RuleFiles(root, config_dir(), compose_text, trust.change, partial(past_actions, sessions_dir))


def local_inbox() -> "Inbox":
    """Return the decisions made outside the processes that hold the sessions."""
    from agent_workbench.subjects.inbox.adapter import LocalInbox
    from agent_workbench.system.user_dirs import state_dir

    return LocalInbox(state_dir() / "inbox")


async def past_speed(sessions_dir: Path, facts: "ModelFacts") -> float:
    """Return the prompt tokens that a model read in a second in earlier sessions, 0.0 if none tells."""
    from agent_workbench.adapters.journal.session_list import past_reading_speed

    return await asyncio.to_thread(past_reading_speed, sessions_dir, facts)


async def past_figures(
    sessions_dir: Path, shared: "Callable[[], SessionStore] | None" = None
) -> "tuple[TaskFigures, ...]":
    """Return what the tasks cost that were done in the newest sessions; with a `shared` store also on other machines.

    A database that does not answer leaves those out.
    """
    from agent_workbench.adapters.journal.session_list import past_figures as read_figures
    from agent_workbench.core.history.summaries import done_tasks

    found = await asyncio.to_thread(read_figures, sessions_dir)
    if shared is None:
        return found
    store = await asyncio.to_thread(shared)
    with suppress(StorageError):
        elsewhere = [each.id for each in await store.summaries() if each.ours and each.worker]
        for session in elsewhere[:MOST_ELSEWHERE]:
            with suppress(JournalError, UsageError):
                found += tuple(done_tasks(await store.read(session)))
    return found


def system_clock() -> "Clock":
    """Return the machine's clock."""
    from agent_workbench.adapters.local_machine import SystemClock

    return SystemClock()


def check_person() -> None:
    """Raise `TrustError` in a command of the agent, unless the state folder is its own. Blocks."""
    from agent_workbench.system.command_bounds import check_record
    from agent_workbench.system.user_dirs import state_dir

    check_record(state_dir())


def user_name() -> str:
    """Return the name of the user who decides. Blocks."""
    from agent_workbench.system.user_dirs import describe_user

    return describe_user()
