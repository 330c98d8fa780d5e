"""A repository whose tasks come from a forge: its sessions, its queue, and the server."""

import asyncio
import os
from collections import Counter
from pathlib import Path

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.repo_context import RepoContext
from agent_workbench.bootstrap.stores import local_inbox
from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.inbox import InboxDecision, InboxItem
from agent_workbench.core.plan import Plan, Task, TaskOrigin, TaskStatus
from agent_workbench.core.ports.stores import HeldSession
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskQueue
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Settings
from agent_workbench.core.task_result import TaskResult
from agent_workbench.subjects.forge.link_calls import ForgeLink
from agent_workbench.subjects.forge.report_calls import Reports
from agent_workbench.subjects.forge.round_calls import ForgeRounds, repo_rounds
from agent_workbench.subjects.queue.wiring import task_queue
from agent_workbench.views.reports.task_report import task_result
from tests.adapters.git.user import User
from tests.adapters.journal.journals import time_of
from tests.fakes.forge_server import REPO, TOKEN, ForgeServer

DIFF = """\
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1 +1 @@
-print('hello')
+print("```")
"""
CHANGE = DiffProposal(ProposalId("P-3"), "write_diff", DIFF, 1, diff=DIFF, paths=("src/app.py",))
TASK = Task(TaskId("task-7"), "Round prices", "Half up.", origin=TaskOrigin.FORGE)


class Scene:
    """The repository on a worker's machine, and its forge."""

    def __init__(
        self, user: User, server: ForgeServer, repo: RepoContext, settings: Settings, queue: TaskQueue
    ) -> None:
        self.user = user
        self.server = server
        self.repo = repo
        self.settings = settings
        self.queue = queue
        self.written: Counter[SessionId] = Counter()

    async def rounds(self) -> ForgeRounds:
        rounds = await repo_rounds(self.repo, self.settings, self.queue)
        assert rounds is not None
        return rounds

    async def round(self) -> tuple[str, ...]:
        """Look at the forge once, as a process of its own would."""
        rounds = await self.rounds()
        outcome = await rounds.round()
        await rounds.close()
        assert outcome.problem is None, outcome.problem
        return outcome.done

    def reports(self) -> Reports:
        return Reports(ForgeLink(self.repo, self.settings))

    async def session(self, *events: e.Event, task: Task = TASK) -> SessionId:
        """Return a session that worked on the task, and was left behind these events."""
        sessions = await asyncio.to_thread(self.repo.sessions, self.settings)
        held = await sessions.open(SessionQuery(fresh=True))
        base = self.user.head()
        self.written[held.id] = 0
        story: tuple[e.Event, ...] = (
            e.SessionStarted(held.id, str(self.user.root), base, "0.1.0"),
            e.PlanRead("tasks/queue/default/task-7.yaml", Plan((task,))),
            e.TaskStarted(task.id, task, WorkspaceFacts("/w", f"agent/{task.id}", base, "t" * 40), ("pytest -q",)),
        )
        for event in (*story, *events):
            await self.append(held, event)
        await held.journal.close()
        return held.id

    async def hold(self, session: SessionId) -> HeldSession:
        """Open a session that was left."""
        sessions = await asyncio.to_thread(self.repo.sessions, self.settings)
        return await sessions.open(SessionQuery(session))

    async def append(self, held: HeldSession, event: e.Event) -> None:
        await held.journal.append(self.written[held.id], time_of(self.written[held.id]), event)
        self.written[held.id] += 1

    async def queued(self, task: Task, session: SessionId, state: QueueState) -> None:
        """Let the queue have the task in this state."""
        await self.queue.put(QueuedTask(task.id, "goal: x\n", origin=task.origin))
        claim = await self.queue.claim("worker", 60)
        assert claim is not None
        await self.queue.renew(claim, 60, session)
        if state is QueueState.PARKED:
            await self.queue.park(claim, "waits")
        elif state is not QueueState.CLAIMED:
            await self.queue.finish(claim, state, "")

    async def parked(self, proposal: Proposal = CHANGE, task: Task = TASK) -> InboxItem:
        """Park the task with a proposal, shown on the forge; return what waits."""
        session = await self.session(e.ActionProposed(proposal), task=task)
        await self.queued(task, session, QueueState.PARKED)
        await self.round()
        return await self.waiting(session)

    async def waiting(self, session: SessionId) -> InboxItem:
        from agent_workbench.subjects.inbox.calls import repo_inbox

        return next(each for each in await (await repo_inbox(self.repo.invocation)).items() if each.session == session)

    async def decisions(self, session: SessionId) -> tuple[InboxDecision, ...]:
        return await local_inbox().pending(session)

    async def done(self, *, passed: bool = True, task: Task = TASK) -> TaskResult:
        """Return the result of the task, done and committed on its branch."""
        name = f"agent/{task.id}"
        self.user.git("branch", "--force", name, self.user.head())
        checks = (CheckResult("pytest -q", 0 if passed else 1, "", 1.5), CheckResult("ruff check .", 0, "", 0.25))
        session = await self.session(
            e.TestsFinished(CheckPurpose.FINAL, checks),
            e.TaskCommitted(task.id, CommitId(self.user.head()), name, "[Agent] Complete"),
            e.TaskFinished(task.id, TaskStatus.DONE, ""),
            task=task,
        )
        return await self.result(session, task)

    async def result(self, session: SessionId, task: Task = TASK) -> TaskResult:
        from agent_workbench.core.fold import fold_all

        sessions = await asyncio.to_thread(self.repo.sessions, self.settings)
        result = task_result(fold_all(await sessions.read(session)), task.id)
        assert result is not None
        return result


def forge_environ(server: ForgeServer) -> dict[str, str]:
    """Return the environment of a worker that knows the forge."""
    return {
        "AGENT_FORGE__KIND": server.kind,
        "AGENT_FORGE__URL": server.url,
        "AGENT_FORGE__REPO": REPO,
        "AGENT_FORGE__USERS": "ada,Bob",
        server.token_env: TOKEN,
    }


async def make_scene(user: User, server: ForgeServer) -> Scene:
    invocation = Invocation(Path(user.root), {**os.environ, **forge_environ(server)}, {})
    repo, settings = await trusted_repo(invocation)
    assert settings.forge.active
    return Scene(user, server, repo, settings, await task_queue(repo))
