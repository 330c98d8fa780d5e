"""Runs `agent` as a user would, with a model that says what a file tells it, and halts where it is told to.

`launcher.py PLAN ARGUMENT...`, where PLAN is a JSON file: `scripts` as `ScriptedModel` takes them (none: the model is
left as it is), `halt` the name of a point at which the run stays, `mark` the file that is written when it is there.
Points: an event's class, such as `ActionDecided` or `ActionDecided#3` for the third (recorded, and nothing after it),
`token` (within an answer), `commit` (the branch has moved, the journal does not know),
`open` (a worktree was made, the journal does not know). Of a worker: `claim` (a task is claimed), `note` (its claim
names the session), `park` and `finish` (the queue knows what became of it). `lease_seconds` is the lease of tasks that
are shared by machines (0: the usual one), and what is left of it when the lease of their session ends.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.bootstrap.repo_context import RepoContext, Say
from agent_workbench.cli.main import execute
from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.ids import CommitId
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose, TextDelta
from agent_workbench.core.ports.model import EndpointModels, Model
from agent_workbench.core.ports.task_queue import TaskClaim
from agent_workbench.core.repo.workspace import WorkspaceRequest
from agent_workbench.core.settings import Settings
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.engine.recorder import Recorder
from agent_workbench.subjects.queue.folder_adapter import FolderQueue

TOKENS_BEFORE_HALT = 5


class Halt(Struct):
    """A point at which the run stays, and the file that says that it is there; it goes on when that is taken away."""

    point: str
    mark: Path
    passed: int = 0

    async def at(self, name: str) -> None:
        """Stay, if this is the point."""
        wanted, _, number = self.point.partition("#")
        if name != wanted:
            return
        self.passed += 1
        if self.passed == int(number or 1):
            self.mark.write_text(name)
            while self.mark.exists():  # noqa: ASYNC110 - another process takes the mark away
                await asyncio.sleep(0.01)


class HaltingModel:
    """Passes everything on to `inner`, and halts within an answer."""

    def __init__(self, inner: Model, halt: Halt) -> None:
        self._inner = inner
        self._halt = halt

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return await self._inner.observe(purpose)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        count = 0
        async for item in self._inner.answer(request):
            yield item
            count += isinstance(item, TextDelta)
            if count == TOKENS_BEFORE_HALT:
                await self._halt.at("token")

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return await self._inner.count_tokens(texts)

    async def close(self) -> None:
        await self._inner.close()


def _tell_tasks(*_: object) -> None:
    """Print where every task of the event loop waits."""
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)


@contextmanager
def _leases(seconds: float) -> Iterator[None]:
    """Make leases short, in every module that has their length."""
    from agent_workbench.adapters.database import journal_rows, session_copier
    from agent_workbench.subjects.worker import loop_calls

    shorter = {"LEASE_SECONDS": seconds * 0.75, "RENEW_SECONDS": seconds * 0.25}
    with (
        patch.object(loop_calls, "SHARED_LEASE_SECONDS", seconds),
        patch.dict(vars(journal_rows), shorter),
        patch.dict(vars(session_copier), shorter),
    ):
        yield


def main(plan_path: str, *arguments: str) -> int:
    """Run the command line as the plan says and return its exit code."""
    plan = json.loads(Path(plan_path).read_text())
    halt = Halt(plan["halt"], Path(plan["mark"]))
    plain_model, plain_record, plain_commit = RepoContext.model, Recorder.record, GitWorkspace.commit
    plain_open, plain_endpoints = Repository.open, RepoContext.endpoint_models

    def model(site: RepoContext, settings: Settings, say: Say) -> Model:
        inner = plain_model(site, settings, say)
        return HaltingModel(ScriptedModel(inner, plan["scripts"]) if plan["scripts"] else inner, halt)

    async def record(recorder: Recorder, event: Event, *, after: int | None = None) -> Recorded:
        recorded = await plain_record(recorder, event, after=after)
        await halt.at(type(event).__name__)
        return recorded

    async def commit(workspace: GitWorkspace, tree: str, message: str) -> CommitId:
        made = await plain_commit(workspace, tree, message)
        await halt.at("commit")
        return made

    async def opened(repository: Repository, request: WorkspaceRequest) -> GitWorkspace:
        workspace = await plain_open(repository, request)
        await halt.at("open")
        return workspace

    plain_queue = FolderQueue.claim, FolderQueue.renew, FolderQueue.park, FolderQueue.finish

    async def claim(queue: FolderQueue, *said: Any, **options: Any) -> TaskClaim | None:
        claimed = await plain_queue[0](queue, *said, **options)
        if claimed is not None:
            await halt.at("claim")
        return claimed

    async def renew(queue: FolderQueue, *said: Any) -> None:
        await plain_queue[1](queue, *said)
        await halt.at("note")

    async def park(queue: FolderQueue, *said: Any) -> None:
        await plain_queue[2](queue, *said)
        await halt.at("park")

    async def finish(queue: FolderQueue, *said: Any) -> None:
        await plain_queue[3](queue, *said)
        await halt.at("finish")

    class Endpoints:
        """The endpoints of the settings, which say what the plan tells them."""

        def __init__(self, inner: EndpointModels) -> None:
            self._inner = inner
            self.close = inner.close
            self.servers, self.load, self.unload = inner.servers, inner.load, inner.unload

        async def named(self, name: str, model: str = "") -> Model:
            found = await self._inner.named(name, model)
            return HaltingModel(ScriptedModel(found, plan["scripts"]) if plan["scripts"] else found, halt)

    def endpoints(site: RepoContext, settings: Settings, say: Say) -> EndpointModels:
        return Endpoints(plain_endpoints(site, settings, say))

    lease = float(plan.get("lease_seconds", 0.0))
    signal.signal(signal.SIGUSR1, _tell_tasks)
    with (
        _leases(lease) if lease else nullcontext(),
        patch.object(Repository, "open", opened),
        patch.object(RepoContext, "model", model),
        patch.object(RepoContext, "endpoint_models", endpoints),
        patch.object(Recorder, "record", record),
        patch.object(GitWorkspace, "commit", commit),
        patch.multiple(FolderQueue, claim=claim, renew=renew, park=park, finish=finish),
    ):
        return execute(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
