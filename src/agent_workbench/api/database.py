"""The shared database: apply its schema, and report its state."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.trusted_repo import database_advice, trusted_repo
from agent_workbench.bootstrap.database import (
    allowed_signers,
    database_queue,
    session_refs,
    shared_database,
    shared_signatures,
)
from agent_workbench.core.database_report import MOST_SECONDS_APART, DatabaseReport
from agent_workbench.core.errors import (
    ConfigError,
    DatabaseDownError,
    JournalError,
    SigningError,
    StorageError,
    WorkbenchError,
    WorkspaceError,
    error_text,
)
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.signed import PERSON_PURPOSES, WORKER_PURPOSES
from agent_workbench.core.text.amounts import counted_text

if TYPE_CHECKING:  # loaded only where a database is set
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.settings import Settings


async def migrate_database(invocation: Invocation) -> tuple[str, tuple[str, ...]]:
    """Apply what the database lacks of the schema; return its place and the names of what was applied.

    Raises `ConfigError` if no database is set, `StorageError` if it does not answer or another version migrated it.
    """
    repo, settings = await _with_database(invocation)
    from agent_workbench.adapters.database.migrations import migrate, migrations

    try:
        database = shared_database(repo, settings.database)
        return database.place, await migrate(database, await asyncio.to_thread(migrations))
    finally:
        await repo.shared.close()


async def check_database(invocation: Invocation, project: str = "") -> DatabaseReport:
    """Return the state of the database, of this machine's keys, and of the queue of a project.

    Raises `ConfigError` if no database is set; whatever else is wrong is in the report.
    """
    repo, settings = await _with_database(invocation)
    from agent_workbench.bootstrap.shared_sessions import copy_backlog, copy_rest
    from agent_workbench.subjects.queue.wiring import DEFAULT_PROJECT

    try:
        with suppress(WorkbenchError):  # what is wrong is found again below
            await copy_rest(await asyncio.to_thread(repo.sessions, settings))
        report = await _server(repo, settings, project or DEFAULT_PROJECT)
    finally:
        await repo.shared.close()
    backlog = await asyncio.to_thread(copy_backlog, repo, repo.sessions_dir(settings))
    report = await _with_remote(repo, settings, replace(report, backlog=backlog))
    return await _with_keys(repo, settings, report)


async def _with_remote(repo: "RepoContext", settings: "Settings", report: DatabaseReport) -> DatabaseReport:
    """Add the name of the git remote, and what it answers."""
    name = settings.database.remote
    try:
        sessions = await session_refs(repo, settings).check()
    except (ConfigError, StorageError, JournalError, WorkspaceError) as error:
        return replace(report, remote=name, problems=(*report.problems, error_text(error)))
    return replace(report, remote=f"{name}: answers, with {counted_text(sessions, 'session')}")


async def _with_database(invocation: Invocation) -> "tuple[RepoContext, Settings]":
    repo, settings = await trusted_repo(invocation)
    if not settings.database.active:
        advice = "name the variable that holds its address in .agent.yml: `database: {url_env: AGENT_DATABASE_URL}`"
        raise ConfigError("no database is set", advice=await database_advice(repo, advice), page="how-to/database.md")
    return repo, settings


async def _server(repo: "RepoContext", settings: "Settings", project: str) -> DatabaseReport:
    """Return what the server tells, up to the first thing that is wrong."""
    from agent_workbench.adapters.database.connection import server_facts
    from agent_workbench.adapters.database.migrations import check_schema, migrations

    database = shared_database(repo, settings.database)
    report = DatabaseReport(database.place)
    try:
        facts = await server_facts(database)
        report = replace(
            report,
            reachable=True,
            server=facts.version,
            milliseconds=round(facts.milliseconds, 3),
            clock_seconds=round(facts.clock_seconds, 3),
        )
        if abs(facts.clock_seconds) > MOST_SECONDS_APART:
            apart = f"this machine's clock and the server's are {abs(facts.clock_seconds):.0f} s apart: set them by NTP"
            report = replace(report, problems=(apart,))
        wanted = await asyncio.to_thread(migrations)
        await check_schema(database, wanted)
        report = replace(report, schema=tuple(f"{each.number}-{each.name}" for each in wanted))
        queue = await database_queue(repo, settings, project)
        tasks, uncounted = await queue.uncounted()
        return replace(report, tasks=tasks, uncounted=uncounted)
    except DatabaseDownError as error:
        why = await database.refusal()
        advice = f"start it, or correct its address in {settings.database.url_env}"
        return replace(report, problems=(*report.problems, f"{error}{f': {why}' if why else ''} ({advice})"))
    except (StorageError, SigningError) as error:
        return replace(report, problems=(*report.problems, error_text(error)))


async def _with_keys(repo: "RepoContext", settings: "Settings", report: DatabaseReport) -> DatabaseReport:
    """Add this machine's lines for other machines, and what is wrong with the file of allowed signers."""
    signatures = shared_signatures(repo, settings.database)
    signers = allowed_signers(settings.database)
    there = await asyncio.to_thread(signers.exists)
    report = replace(report, allowed_signers=str(signers), has_signers=there)
    try:
        return replace(
            report,
            worker_line=await signatures.public_line(WORKER_PURPOSES),
            person_line=await signatures.public_line(PERSON_PURPOSES),
            problems=(*report.problems, *await signatures.problems()),
        )
    except SigningError as error:
        return replace(report, problems=(*report.problems, error_text(error)))
