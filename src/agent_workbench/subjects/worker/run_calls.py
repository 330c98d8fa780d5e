"""A worker on one queue: it joins the fleet, claims tasks, does each in a session of its own, and tells hooks."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.trusted_repo import redactor_of, require_trust
from agent_workbench.bootstrap.repo_context import RepoContext
from agent_workbench.bootstrap.stores import system_clock
from agent_workbench.core.diagnostics import endpoint_lines
from agent_workbench.core.errors import ExitCode, StorageError, WorkbenchError, error_text
from agent_workbench.core.hook_document import bare_document
from agent_workbench.core.session_request import Invocation, SessionEnd
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.settings.models import SHORT_FORM
from agent_workbench.core.workers import WorkerRecord, WorkerState
from agent_workbench.subjects.inbox.wiring import repo_decisions
from agent_workbench.subjects.worker.membership_calls import Membership, MembershipParts, ServedModels, WorkerEndpoint
from agent_workbench.subjects.worker.outage_calls import Outages, Pauses, Sleep
from agent_workbench.subjects.worker.parked_task_calls import ParkedTasks, RefusedFiles, WorkerLog, WriteLine
from agent_workbench.subjects.worker.schedule import Schedule

if TYPE_CHECKING:
    from agent_workbench.core.events import SessionConfigured
    from agent_workbench.core.ports.machine import Clock
    from agent_workbench.core.ports.task_queue import ProjectQueue
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.forge.report_calls import Reports
    from agent_workbench.subjects.forge.round_calls import ForgeWatch
    from agent_workbench.subjects.queue.worker_files_adapter import WorkerFiles
    from agent_workbench.subjects.worker.loop_calls import Dispatcher, WorkerLoop


DEFAULT_PROJECT = "default"


class WorkerOptions(Struct, frozen=True):
    """A worker's queue and mode: `once`, by `schedule`, or (neither) as tasks come. `jobs` None: as in the settings."""

    project: str = ""
    queue: Path | None = None
    once: bool = False
    schedule: Schedule | None = None
    jobs: int | None = None


class WorkerRun:
    """One run of a worker until it is stopped or, with `once`, until it has done a task."""

    def __init__(
        self,
        invocation: Invocation,
        options: WorkerOptions,
        write: WriteLine,
        *,
        clock: "Clock | None" = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._host = LocalSessionHost(invocation, say=self._say)
        self._options = options
        self._project = options.project or DEFAULT_PROJECT
        self._write = write
        self._clock = clock or system_clock()
        self._pauses = Pauses(sleep)
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._since = self._clock.now()
        self._log: WorkerLog | None = None
        self._files: WorkerFiles | None = None
        self._dispatcher: Dispatcher | None = None
        self._refused: RefusedFiles | None = None
        self._reports: Reports | None = None
        self._membership: Membership | None = None
        self._shared = False
        self._next_run = ""
        self._stops = 0

    def stop(self) -> bool:
        """End between two steps, at once if called again; return False if nothing is open yet."""
        self._stops += 1
        self._pauses.stopping.set()
        if self._dispatcher is None:
            return False
        self._dispatcher.stop(now=self._stops > 1)
        return True

    async def work(self) -> SessionEnd:
        """Work and return the end.

        Raises `TrustError`, `ShellError` without a sandbox, `StorageError` without the queue's folder, and whatever
        else keeps any task from being worked on.
        """
        from agent_workbench.api.sessions.session_opening import check_worker_start
        from agent_workbench.subjects.queue.wiring import in_database, project_queue

        repo = await self._host.repo()
        await require_trust(repo)
        settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
        self._log = WorkerLog(self._write, self._clock, redactor_of(repo.invocation, settings).redact)
        sandbox = await check_worker_start(repo, settings, self._options.jobs or settings.worker.jobs)
        if not sandbox.holds:
            self._log.caution("unconfined", f"tests and commands are not confined here: {sandbox.why}")
        queue = await project_queue(repo, settings, self._project, self._options.queue)
        self._shared = in_database(settings, self._options.queue)
        if not self._shared and not settings.forge.active:
            await check_exists(queue)
        try:
            return await self._work(repo, settings, queue)
        finally:
            if self._membership is not None:
                await self._membership.end()
            if self._files is not None:
                await asyncio.to_thread(self._files.end)
            if self._reports is not None:
                await self._reports.close()
            await queue.close()
            await repo.shared.close()

    async def _work(self, repo: "RepoContext", settings: "Settings", queue: "ProjectQueue") -> SessionEnd:
        from agent_workbench.subjects.forge.round_calls import beside
        from agent_workbench.subjects.queue.wiring import worker_files

        self._files = await asyncio.to_thread(worker_files, repo, self._project)
        await asyncio.to_thread(self._files.begin, self._name)
        most_jobs = self._options.jobs or settings.worker.jobs
        if settings.database.active:
            parts = FleetEntry(self._name, most_jobs, self._pauses, self._log_of_worker())
            self._membership = await enter_fleet(repo, settings, self._project, parts)
            self._name = self._membership.name
        loop = await self._loop(repo, settings, queue, most_jobs)
        self._changed()
        try:
            async with nullcontext() if self._membership is None else self._membership.kept():
                if self._options.once:
                    return await loop.once()
                await beside(await self._watch(repo, settings, queue), loop.run(self._options.schedule))
        except WorkbenchError as error:
            self._log_of_worker().fail("stopped", error_text(error))
            raise
        finally:
            await self._settle()
        return SessionEnd(ExitCode.INTERRUPTED, "stopped")

    async def _watch(self, repo: "RepoContext", settings: "Settings", queue: "ProjectQueue") -> "ForgeWatch | None":
        """Return the looks at the forge beside the work, None without a forge."""
        from agent_workbench.subjects.forge.round_calls import ForgeWatch, repo_rounds
        from agent_workbench.subjects.queue.wiring import report_outbox
        from agent_workbench.subjects.worker.report_calls import TaskReports

        rounds, log = await repo_rounds(repo, settings, queue), self._log_of_worker()
        if rounds is None:
            return None
        note, caution = partial(log.note, "forge"), partial(log.caution, "forge")
        reports = TaskReports(self._reports, report_outbox(repo, self._project), queue, log)
        return ForgeWatch(rounds, settings.forge.poll_seconds, note, caution, reports.send_again)

    async def _loop(
        self, repo: "RepoContext", settings: "Settings", queue: "ProjectQueue", most_jobs: int
    ) -> "WorkerLoop":
        """Return the parts of the worker, put together."""
        from agent_workbench.api.approvals import policy_in_force
        from agent_workbench.subjects.forge.report_calls import repo_reports
        from agent_workbench.subjects.inbox.calls import repo_inbox
        from agent_workbench.subjects.queue.wiring import report_outbox, task_commits
        from agent_workbench.subjects.worker.claimed_task_calls import ClaimedTask, WorkerContext
        from agent_workbench.subjects.worker.loop_calls import (
            LEASE_SECONDS,
            MORE_BEGUN,
            SHARED_LEASE_SECONDS,
            THOROUGH_SECONDS,
            Dispatcher,
            LoopParts,
            WorkerLoop,
        )
        from agent_workbench.subjects.worker.report_calls import TaskReports

        log, membership = self._log_of_worker(), self._membership
        outages = Outages(log, self._pauses, self._name)
        if settings.forge.active:
            self._reports = await asyncio.to_thread(repo_reports, repo, settings)
        reports = TaskReports(self._reports, report_outbox(repo, self._project), queue, log)
        lease = SHARED_LEASE_SECONDS if self._shared else LEASE_SECONDS
        context = WorkerContext(
            self._host,
            queue,
            self._project,
            reports,
            log,
            outages,
            self._clock,
            self._changed,
            asyncio.Semaphore(most_jobs + MORE_BEGUN),
            waits=not self._options.once,
            answered=membership.answered if membership is not None else None,
            lease_seconds=lease,
            committed=task_commits(repo, settings) if self._shared else None,
        )
        self._dispatcher = dispatcher = Dispatcher(
            queue, self._name, lambda claim: ClaimedTask(context, claim), most_jobs, lease, queue.withdrew
        )
        if membership is not None:
            membership.jobs = lambda: dispatcher.working
        sessions = await asyncio.to_thread(repo.sessions, settings)
        decisions = await asyncio.to_thread(repo_decisions, repo, settings, sessions)
        parked = ParkedTasks(queue, decisions, sessions, await repo_inbox(repo.invocation, repo.shared), log)
        await reports.send_again()
        begin = partial(_check_and_resume, queue, parked, await policy_in_force(repo, settings))
        await outages.retry_database(begin, once=self._options.once)
        self._refused = RefusedFiles(queue.refused, partial(_tell_hooks, repo, settings), log)
        log.note("started", f"{self._name} works on {queue.path}{_jobs_words(most_jobs)}")
        refusal = (lambda: membership.refusal) if membership is not None else str
        told = (self._set_next_run, self._changed, self._refused, refusal, queue.news)
        seconds = settings.worker.poll_seconds if self._shared else THOROUGH_SECONDS
        parts = LoopParts(dispatcher, parked, outages, self._pauses, log, self._clock, queue.mark, *told, seconds)
        return WorkerLoop(parts)

    async def _settle(self) -> None:
        """Wait for the sessions that were asked to end; log what stays for the next worker."""
        if self._dispatcher is None:
            return
        self._dispatcher.stop(now=self._stops > 1)
        await self._dispatcher.settle()
        if self._refused is not None:
            await self._refused.settle()
        self._log_of_worker().note("ended", f"{self._name} ends")

    def _set_next_run(self, due: str) -> None:
        self._next_run = due
        self._changed()

    def _changed(self) -> None:
        """Write the state that other processes read; a full disk does not stop the work."""
        if self._membership is not None:
            self._membership.changed()
        if self._files is not None and self._dispatcher is not None:
            state = WorkerState(
                self._name, self._since, self._dispatcher.jobs, self._dispatcher.most_jobs, self._next_run
            )
            with contextlib.suppress(StorageError):
                self._files.write(state)

    def _say(self, text: str) -> None:
        if self._log is not None:
            self._log.trace("status", text)

    def _log_of_worker(self) -> WorkerLog:
        return self._log or WorkerLog(self._write, self._clock, str)


async def check_exists(queue: "ProjectQueue") -> None:
    """Raise `StorageError` if a queue is not there."""
    if not await queue.exists():
        advice = 'make it, or `agent worker add "…"` does'
        raise StorageError(f"Queue directory not found: {queue.path}", advice=advice)


async def _check_and_resume(queue: "ProjectQueue", parked: "ParkedTasks", policy: "SessionConfigured") -> None:
    await queue.exists()
    await parked.resume_passed(policy)


async def _tell_hooks(repo: "RepoContext", settings: "Settings", name: str, reason: str) -> str:
    """Tell the hooks of a file that is no task; return what went wrong."""
    from agent_workbench.core.settings.extensions import HookPoint

    redact = redactor_of(repo.invocation, settings).redact
    return await tell_hooks(repo, HookPoint.TASK_FAILED, redact(name), redact(reason))


def _jobs_words(most_jobs: int) -> str:
    return "" if most_jobs == 1 else f", {most_jobs} tasks at the same time"


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
    from agent_workbench.bootstrap.shared_resources import local_machine
    from agent_workbench.subjects.queue.wiring import recorded_answers, worker_names, worker_registry

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
    from agent_workbench.subjects.queue.wiring import EMBEDDED

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


async def tell_hooks(repo: RepoContext, point: HookPoint, task: str, reason: str) -> str:
    """Run the hooks in force at `point`, beside each other and to their ends; return what went wrong, else nothing."""
    try:
        trusted = await asyncio.to_thread(repo.is_trusted)
        settings = await asyncio.to_thread(lambda: repo.settings(trusted=trusted))
        named = [name for name, hook in settings.hooks if point in hook.events]
        if not named:
            return ""
        hooks = await asyncio.to_thread(repo.hooks, settings)
    except WorkbenchError as error:
        return f"no hook was told of {point}: {error_text(error)}"
    documents = [bare_document(point, name, str(repo.root), task, reason) for name in named]
    runs = (hooks.run(name, point, said.text, "") for name, said in zip(named, documents, strict=True))
    ended = zip(named, await asyncio.gather(*runs), strict=True)
    return "; ".join(f"hook {name} failed at {point}: {each.failure}" for name, each in ended if each.failure)
