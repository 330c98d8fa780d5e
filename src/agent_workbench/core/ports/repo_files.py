"""Ports of the files that the workbench keeps for a repo: plan, scratchpads, settings, trust, rules."""

from collections.abc import Sequence
from typing import Protocol

from agent_workbench.core.approval_rules import StoredRule
from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.ids import TaskId
from agent_workbench.core.local_models import ModelChoice
from agent_workbench.core.plan import Plan, PlanPiece, Task, TaskStatus
from agent_workbench.core.repo_setup import SetupProposal
from agent_workbench.core.settings import Permission


class Plans(Protocol):
    """The file of the plan."""

    @property
    def path(self) -> str:
        """Path of the plan, relative to the repo."""

    async def read(self) -> Plan:
        """Return the plan; raise `PlanError` with file and line."""

    async def set_status(self, task: TaskId, status: TaskStatus, reason: str = "") -> None:
        """Write one task's status and preserve the rest of the file, byte for byte where possible.

        A reason is written beside it while the task is blocked; of a queued one it is the id in the queue, which stays.
        """

    async def set_checks(self, task: TaskId, commands: Sequence[str]) -> None:
        """Write the acceptance commands of a task that has none; the rest of the file stays."""

    async def move(self, task: TaskId, *, up: bool) -> None:
        """Move a task one place up or down; unchanged at the end of the list."""

    async def piece(self, task: TaskId | None, *, new: bool = False, draft: Task | None = None) -> PlanPiece:
        """Return the text of a task (None: the whole plan, even an invalid one), or of a new one after it.

        `draft` is the new task (None: a template with a placeholder). Raises `PlanError` with file and line.
        """

    async def replace_text(self, before: str, text: str, keep: Sequence[TaskId] = ()) -> None:
        """Replace `before`, the text that was edited, by `text`; changes made on disk meanwhile are kept too.

        A value that only lacks its quotes, such as one with a colon, gets them.

        Raises `PlanError`, with nothing written, if the text cannot be read (file and line as in `text`), lacks one of
        the tasks `keep`, or conflicts with a change on disk in the same lines.
        """

    async def add(self, tasks: Sequence[Task]) -> None:
        """Append tasks; comments and order are preserved."""

    async def add_new(self, task: Task) -> Task:
        """Append a task and return it as it was written: with the next free id where its own is taken.

        A missing plan is created. Raises `PlanError` with file and line.
        """

    async def new_plan(self, plan: Plan) -> str:
        """Start a new plan; return the path of the archived former one, empty if there was none."""

    async def content_sha(self) -> str:
        """Return SHA-256 of the plan file's bytes, empty if there is none."""

    def render(self, plan: Plan) -> str:
        """Return the plan as YAML; raise `PlanError` for text that YAML cannot represent."""

    def parse(self, text: str, name: str) -> Plan:
        """Return the plan that YAML text spells; raise `PlanError` that begins with `name:line:column:`."""

    def piece_of(self, text: str, name: str, task: TaskId) -> PlanPiece:
        """Return the lines of a task in YAML text that is called `name`; raise `PlanError` as `parse` does."""


class Memory(Protocol):
    """Scratchpads of tasks."""

    def path(self, task: TaskId, fork: str = "") -> str:
        """Return the path of the task's scratchpad, relative to the repo."""

    async def read_scratchpad(self, task: TaskId, fork: str = "") -> str:
        """Return the text, empty if there is none. A `fork` (its suffix) has notes of its own."""

    async def write_scratchpad(self, task: TaskId, before: str, text: str, fork: str = "") -> str:
        """Replace `before` by `text` and return the new content; a concurrent change is merged, never lost."""

    async def archive_scratchpad(self, task: TaskId, before: str, text: str, time: str, fork: str = "") -> str:
        """Replace `before` by `text` and return the new content; a concurrent change is left as it is.

        The replaced text is archived first, once, under a name with `time`. No file of the archive is overwritten.
        """


class Setup(Protocol):
    """Files and the model that are needed before work can begin."""

    async def proposal(self) -> SetupProposal:
        """Return the files that would be written (none if the repo is set up), and the models if none is configured.

        Raises `ConfigError`.
        """

    async def write(self, proposal: SetupProposal, choice: ModelChoice | None) -> tuple[str, ...]:
        """Write the missing files, never an existing one, and the chosen model; return the paths."""


class Trust(Protocol):
    """The repo's code and settings that would be executed or obeyed, and the user's consent."""

    async def question(self) -> tuple[str, ...]:
        """Return what must be trusted, a line each; nothing if it was, or if there is nothing to trust."""

    async def accept(self) -> None:
        """Record that the user trusts exactly what the question showed."""


class RuleStore(Protocol):
    """Approval rules stored outside of sessions, and past actions to test a rule on."""

    async def kept(self) -> tuple[StoredRule, ...]:
        """Return the rules in force that the user stores outside of the repo; raise `ConfigError`."""

    async def keep(self, kept: StoredRule) -> None:
        """Store a rule; raise `TrustError` if the repo's own rules are not trusted."""

    async def revoke(self, kept: StoredRule) -> None:
        """Remove a stored rule; raise as `keep` does."""

    async def past(self, kind: Permission) -> PastActions:
        """Return past actions of a kind from all sessions of the repo, bounded in number."""
