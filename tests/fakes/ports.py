"""Ports of the engine that are told what to do: a model that says given texts, a shell without confinement, a clock."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.approval_rules import StoredRule
from agent_workbench.core.errors import ConfigError, ModelError, PlanError, SandboxError, WorkbenchError
from agent_workbench.core.events import SkillText
from agent_workbench.core.history.past_actions import PastAction, PastActions
from agent_workbench.core.ids import TaskId
from agent_workbench.core.local_models import FoundServer, ListedModel
from agent_workbench.core.model import (
    AnswerCost,
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    ModelFacts,
    ModelRequest,
    PromptProgress,
    Purpose,
    StopCause,
    TextDelta,
)
from agent_workbench.core.plan import Plan, PlanPiece, Task, TaskStatus, next_id
from agent_workbench.core.ports.model import Model
from agent_workbench.core.ports.workspace import BackgroundCommand, Command, OnOutput, Sources
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, Completion, IndexStatus
from agent_workbench.core.repo.workspace import CommandOutcome, ResourceUse, SandboxFacts
from agent_workbench.core.settings import Permission
from agent_workbench.core.skills import SkillEntry, SkillHit, SkillOrigin, SkillPlace
from agent_workbench.core.task_estimates import Complexity

FACTS = ModelFacts("http://fake", "fake", context_tokens=100_000, template_hash="t", build="b1")


class Cut(Struct, frozen=True):
    """An answer that ends at the token limit."""

    text: str


class Hang(Struct, frozen=True):
    """An answer that says this much and then nothing more."""

    text: str
    dollars: float = 0.0


class Break(Struct, frozen=True):
    """An answer that says this much and then has no end."""

    text: str


Saying = str | Cut | Hang | Break | ModelError


class SayingModel:
    """`core.ports.model.Model` that says one saying after the other; errors are raised. What was asked: `requests`."""

    def __init__(self, sayings: Iterable[Saying] = (), facts: ModelFacts = FACTS) -> None:
        self.sayings = deque(sayings)
        self.facts: ModelFacts | ModelError = facts
        self.requests: list[ModelRequest] = []
        self.streams_ended = 0
        self.closed = False

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        if isinstance(self.facts, ModelError):
            raise self.facts
        return self.facts

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        self.requests.append(request)
        assert self.sayings, f"nothing left to say to: {request.messages[-1].text[:2000]}"
        saying = self.sayings.popleft()
        if isinstance(saying, ModelError):
            raise saying
        text = saying if isinstance(saying, str) else saying.text
        tokens = sum(words(message.text) for message in request.messages)
        try:
            yield PromptProgress(tokens, tokens)
            for start in range(0, len(text), 40):
                yield TextDelta(text[start : start + 40])
            if isinstance(saying, Break):
                return
            if isinstance(saying, Hang):
                yield AnswerCost(saying.dollars)
                await asyncio.Event().wait()
            stop = StopCause.LENGTH if isinstance(saying, Cut) else StopCause.END
            yield AnswerEnd(stop, AnswerFigures(tokens, 0, words(text), 0.25, 0.5))
        finally:
            self.streams_ended += 1

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return tuple(map(words, texts))

    async def close(self) -> None:
        self.closed = True


class OneModel:
    """`core.ports.model.EndpointModels`: the models by name, else the one for every name."""

    def __init__(self, model: Model, others: Mapping[str, Model] | None = None) -> None:
        self._model = model
        self.others = dict(others or {})

    async def named(self, name: str, model: str = "") -> Model:
        return self.others.get(model or name, self._model)

    async def servers(self) -> tuple[FoundServer, ...]:
        return ()

    async def load(self, endpoint: str, model: str) -> ListedModel:
        raise ConfigError(f"there is no server of an endpoint {endpoint!r}")

    async def unload(self, endpoint: str, model: str) -> None:
        await self.load(endpoint, model)

    async def close(self) -> None:
        for model in self.others.values():
            await model.close()


def words(text: str) -> int:
    """Return the number of words, which the fake model takes for tokens."""
    return len(text.split())


class PlainShell:
    """`core.ports.workspace.Shell` that runs commands for real and confines nothing, whatever `holds` says."""

    def __init__(self, *, holds: bool = False) -> None:
        self.holds = holds
        self.overlays = True
        self.lines: list[str] = []

    async def observe(self) -> SandboxFacts:
        return SandboxFacts(
            "bwrap" if self.holds else "none", self.holds, network=False, why="nothing is confined here"
        )

    async def copies(self, linked: Sequence[str]) -> bool:
        return self.overlays

    def used(self) -> ResourceUse | None:
        return None

    async def start(self, command: Command, on_output: OnOutput) -> BackgroundCommand:
        raise SandboxError(f"{command.line} was not left running: nothing is confined here")

    async def run(self, command: Command, on_output: OnOutput) -> CommandOutcome:
        self.lines.append(command.line)
        # A cancelled start would leave asyncio waiting for the pipe, which what the command started holds open.
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                command.line,
                cwd=command.folder,
                env={"PATH": os.environ["PATH"], **command.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        )
        said: list[str] = []
        try:
            process = await asyncio.shield(starting)
            async with asyncio.timeout(command.timeout_seconds):
                assert process.stdout is not None
                while piece := (await process.stdout.read(4096)).decode(errors="replace"):
                    said.append(piece)
                    on_output(piece)
                return CommandOutcome(await process.wait(), "".join(said), 0.1)
        except TimeoutError:
            return CommandOutcome(None, "".join(said), command.timeout_seconds, reason="timed out")
        finally:
            process = await starting
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


class TickingClock:
    """`core.ports.machine.Clock`: each look at it is a second later."""

    def __init__(self) -> None:
        self._seconds = 0

    def now(self) -> str:
        self._seconds += 1
        minutes, seconds = divmod(self._seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"2026-01-02T{hours:02}:{minutes:02}:{seconds:02}.000000Z"

    def monotonic_seconds(self) -> float:
        self._seconds += 1
        return float(self._seconds)


class GivenChunks(Struct):
    """`core.ports.search.Retriever` that finds what it was given; what it was asked is in `queries`."""

    chunks: tuple[Chunk, ...] = ()
    queries: list[str] = field(default_factory=list)
    closed: bool = False

    def prepare(self, sources: Sources) -> object:
        return sources

    def status(self, sources: Sources) -> IndexStatus:
        return IndexStatus(files=len({chunk.path for chunk in self.chunks}), chunks=len(self.chunks))

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        self.queries.append("\n".join(filter(None, (query.text, query.failing))))
        return self.chunks[:limit]

    async def symbols(self, sources: Sources, prefix: str, limit: int) -> tuple[Completion, ...]:
        return tuple(Completion(each.place, each.symbol) for each in self.chunks if prefix in each.symbol)[:limit]

    async def close(self) -> None:
        self.closed = True


class GivenSkills:
    """`core.ports.extensions.Skills` over texts by name."""

    def __init__(self, texts: Mapping[str, str], *, has_files: bool = False) -> None:
        self._texts = texts
        self._has_files = has_files

    async def list(self) -> tuple[SkillEntry, ...]:
        return tuple(
            SkillEntry(name, "", SkillOrigin.REPO, f"skills/{name}", has_files=self._has_files)
            for name in sorted(self._texts)
        )

    async def places(self) -> tuple[SkillPlace, ...]:
        return (SkillPlace("skills", SkillOrigin.REPO, len(self._texts)),)

    async def rank(self, words: str) -> tuple[SkillHit, ...]:
        said = words.lower().split()
        return tuple(SkillHit(name, 1.0, (name,)) for name in sorted(self._texts) if name in said)

    async def body(self, name: str) -> str:
        return (await self.load([name]))[0].text

    async def read_file(self, name: str, path: str) -> str:
        raise ConfigError(f"there is no file {path!r} in the skill {name!r}")

    async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        if unknown := [name for name in names if name not in self._texts]:
            raise ConfigError(f"there is no skill {unknown[0]!r}")
        return tuple(SkillText(name, self._texts[name]) for name in names)


class HeldPlan:
    """`core.ports.repo_files.Plans` that holds its plan in memory."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.statuses: list[tuple[TaskId, TaskStatus]] = []

    @property
    def path(self) -> str:
        return "memory/plans/PLAN.yaml"

    async def read(self) -> Plan:
        return self.plan

    async def set_status(self, task: TaskId, status: TaskStatus, reason: str = "") -> None:
        self.plan.task(task)
        self.statuses.append((task, status))
        self.plan = self.plan.with_status(task, status, reason)

    async def set_checks(self, task: TaskId, commands: Sequence[str]) -> None:
        self.plan = self.plan.with_checks(task, tuple(commands))

    async def move(self, task: TaskId, *, up: bool) -> None:
        self.plan = self.plan.moved(task, up=up)

    async def piece(self, task: TaskId | None, *, new: bool = False, draft: Task | None = None) -> PlanPiece:
        text = self.plan.goal
        return PlanPiece(self.path, text, 0, len(text), text, task=task, new=new)

    async def content_sha(self) -> str:
        return str(hash(self.plan))

    def render(self, plan: Plan) -> str:
        return "".join(f"{task.id} {task.description}\n" for task in plan.tasks)

    def parse(self, text: str, name: str) -> Plan:
        raise PlanError(f"{name}:1:1: only the real file reads YAML")

    def piece_of(self, text: str, name: str, task: TaskId) -> PlanPiece:
        raise PlanError(f"{name}:1:1: only the real file reads YAML")

    async def new_plan(self, plan: Plan) -> str:
        self.plan = plan
        return "memory/plans/archive/PLAN.yaml"

    async def replace_text(self, before: str, text: str, keep: Sequence[TaskId] = ()) -> None:
        """Take the text for the plan's goal, which stands for all of it here."""
        if before != self.plan.goal or ":" in text:
            raise PlanError(f"{self.path}:1:3: expected another goal")
        self.plan = Plan(self.plan.tasks, text)

    async def add(self, tasks: Sequence[Task]) -> None:
        self.plan = Plan((*self.plan.tasks, *tasks), self.plan.goal)

    async def add_new(self, task: Task) -> Task:
        if any(each.id == task.id for each in self.plan.tasks):
            task = replace(task, id=next_id(self.plan.tasks))
        await self.add((task,))
        return task


class HeldRules(Struct):
    """`core.ports.repo_files.RuleStore` in memory; `broken` is raised by changes."""

    rules: tuple[StoredRule, ...] = ()
    actions: tuple[PastAction, ...] = ()
    broken: WorkbenchError | None = None

    async def kept(self) -> tuple[StoredRule, ...]:
        return self.rules

    async def keep(self, kept: StoredRule) -> None:
        if self.broken is not None:
            raise self.broken
        self.rules = (*self.rules, kept)

    async def revoke(self, kept: StoredRule) -> None:
        self.rules = tuple(each for each in self.rules if each != kept)

    async def past(self, kind: Permission) -> PastActions:
        return PastActions(tuple(each for each in self.actions if each.proposal.kind is kind), 1)
