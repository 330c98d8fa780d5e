"""Unattended run of tasks under the policy: one session after another until no task is ready."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.trusted_repo import require_trust
from agent_workbench.bootstrap.repo_context import RepoContext
from agent_workbench.core.errors import task_locked
from agent_workbench.core.history.summaries import SessionQuery, unfinished_tasks, was_killed_when_done
from agent_workbench.core.ids import NO_SESSION, TaskId
from agent_workbench.core.intents import Leave
from agent_workbench.core.session_request import SessionEnd, TaskOutcome, TaskOutcomeKind

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.core.ports.session_host import SessionHandle
    from agent_workbench.core.ports.stores import Inbox, SessionStore
    from agent_workbench.core.settings import Settings


class UnattendedRun:
    """A run over the tasks of `query` (all that are ready if it names none); `end` is known when it is over."""

    def __init__(self, host: LocalSessionHost, query: SessionQuery) -> None:
        self._host = host
        self._query = query
        self._session: SessionHandle | None = None
        self._stopped = False
        self.end = SessionEnd()

    def stop(self) -> bool:
        """Have the open session left and open no further one; return False if none is open."""
        self._stopped = True
        if self._session is None:
            return False
        self._session.submit(Leave("stopped"))
        return True

    async def sessions(self) -> "AsyncGenerator[SessionHandle]":
        """Yield each session when it is open; go on when it has ended. Raises `TrustError`, `PlanError`."""
        repo = await self._host.repo()
        await require_trust(repo)
        settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
        if self._query.tasks is None:
            async for session in self._all(repo, settings):
                yield session
            return
        over = await self._already_over(repo, settings, self._query.tasks)
        if over is not None:
            self.end = over
            return
        self._session = await self._host.open_unattended(repo, self._query)
        yield self._session
        self.end = await self._session.wait()

    async def _all(self, repo: RepoContext, settings: "Settings") -> "AsyncGenerator[SessionHandle]":
        """Resume every session that stopped in a task, then do all tasks that are ready.

        A parked task keeps its session, so that the others need another one.
        """
        from agent_workbench.engine.session.unattended import OF_TASKS, settled, sum_up, taken_outcome

        sessions, plans = await asyncio.to_thread(repo.sessions, settings), repo.plans(settings)
        inbox = await asyncio.to_thread(repo.inbox, settings)
        query, before = self._query, tuple[TaskOutcome, ...]()
        while not self._stopped:
            plan = await plans.read()
            unfinished = unfinished_tasks(await sessions.summaries())
            taken = await repo.repository.taken([each.id for each in plan.tasks if each.open], NO_SESSION)
            held = {**{task: holder for task, holder in unfinished.items() if holder}, **taken}
            outcomes = {task: taken_outcome(task, holder) for task, holder in held.items()}
            outcomes |= {each.task: each for each in before}
            if plan.next_task(outcomes) is None and await sessions.find(query) is None:
                self.end = sum_up(outcomes.values(), plan)
                return
            elsewhere = () if query.fresh else tuple(unfinished)
            self._session = await self._host.open_unattended(repo, query, tuple(outcomes.values()), elsewhere)
            yield self._session
            self.end = await self._session.wait()
            if self.end.exit_code not in OF_TASKS:
                return
            before = await self._undecided(sessions, inbox, settled(self.end.outcomes))
            over = {each.id for each in (await plans.read()).tasks if not each.open}
            query = replace(query, name="", passing=frozenset(over.union(each.task for each in before)))

    async def _undecided(
        self, sessions: "SessionStore", inbox: "Inbox", outcomes: tuple[TaskOutcome, ...]
    ) -> tuple[TaskOutcome, ...]:
        """Return the outcomes without tasks that were parked and decided since: they go on before the run ends."""
        decided = set[TaskId]()
        for summary in await sessions.summaries():
            if summary.ours and summary.waits and summary.tasks and await inbox.pending(summary.id):
                decided.add(summary.tasks[-1])
        return tuple(
            each for each in outcomes if each.outcome is not TaskOutcomeKind.PARKED or each.task not in decided
        )

    async def _already_over(
        self, repo: RepoContext, settings: "Settings", tasks: tuple[TaskId, ...]
    ) -> SessionEnd | None:
        """Return the end if there is nothing to do, so that no empty session is begun.

        Raises `PlanError`, and `LockedError` if another session works on the first of the tasks.
        """
        from agent_workbench.engine.session.unattended import all_done, already_done
        from agent_workbench.engine.task.task_start import check_startable

        sessions = await asyncio.to_thread(repo.sessions, settings)
        if await sessions.find(self._query) is not None:
            return None
        plan = await repo.plans(settings).read()
        again = not self._query.fresh and all_done(plan, tasks)
        if again and was_killed_when_done(await sessions.summaries(), tasks):
            return already_done(tasks)
        check_startable(plan, tasks)
        for task, holder in (await repo.repository.taken(tasks[:1], NO_SESSION)).items():
            raise task_locked(task, holder)
        return None
