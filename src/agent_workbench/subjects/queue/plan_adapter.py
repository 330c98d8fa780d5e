"""Port `Plans` of a session whose plan the journal alone keeps: of a queued task, or from another machine."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Never

from msgspec import json

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, PlanPiece, Task, TaskStatus


class QueuedPlan:
    """The plan of a session as its journal has it; `path` is that of its file, which may be on another machine.

    Statuses live as long as the object; the journal has them too. Nothing else can be changed.
    """

    def __init__(self, plan: Plan, path: str) -> None:
        self._plan = plan
        self._path = path

    @property
    def path(self) -> str:
        return self._path

    async def read(self) -> Plan:
        return self._plan

    async def set_status(self, task: TaskId, status: TaskStatus, reason: str = "") -> None:
        self._plan.task(task)
        self._plan = self._plan.with_status(task, status, reason)

    async def set_checks(self, task: TaskId, commands: Sequence[str]) -> None:
        self._refuse()

    async def move(self, task: TaskId, *, up: bool) -> None:
        self._refuse()

    async def piece(self, task: TaskId | None, *, new: bool = False, draft: Task | None = None) -> PlanPiece:
        self._refuse()

    async def replace_text(self, before: str, text: str, keep: Sequence[TaskId] = ()) -> None:
        self._refuse()

    async def add(self, tasks: Sequence[Task]) -> None:
        self._refuse()

    async def add_new(self, task: Task) -> Task:
        self._refuse()

    async def new_plan(self, plan: Plan) -> str:
        self._refuse()

    async def content_sha(self) -> str:
        return sha256(json.encode(self._plan)).hexdigest()

    def render(self, plan: Plan) -> str:
        self._refuse()

    def parse(self, text: str, name: str) -> Plan:
        self._refuse()

    def piece_of(self, text: str, name: str, task: TaskId) -> PlanPiece:
        self._refuse()

    def _refuse(self) -> Never:
        raise PlanError(
            f"the plan of this session, {self._path}, is kept in its journal and cannot be changed",
            advice="`agent tui --new` opens a session on the plan of the repository",
        )
