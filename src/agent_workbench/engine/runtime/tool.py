"""The interface of a tool: a draft before the decision, a result after it; and the base of built-in tools."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import (
    ConfigError,
    PatchError,
    RepoError,
    ShellError,
    ToolError,
    UsageError,
    WorkspaceError,
)
from agent_workbench.core.events import ActionResult, Event
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.proposals import KINDS, Proposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import (
    Argument,
    ArgumentFault,
    Arguments,
    Choices,
    check_choices,
    read_arguments,
    schema_of,
)
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext


class ToolResult(Struct, frozen=True):
    """The result of a call. `effects` are recorded, in order, before the action is recorded as finished.

    `shown` are the lines of files in the observation, exactly as it shows them. `changes` are those of an applied diff.
    `follow` is proposed next: a person's answer, with which the call goes on.
    """

    observation: str
    result: ActionResult = ActionResult.OK
    effects: Sequence[Event] = ()
    output: str = ""
    cut_bytes: int = 0
    shown: tuple[Chunk, ...] = ()
    changes: tuple[FileChange, ...] = ()
    follow: "Tool | None" = None


class Tool(Protocol):
    """A tool: what is known of it (`spec`), and what it does."""

    @property
    def spec(self) -> ToolSpec:
        """Name, summary, permission, schema and source."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return the values that arguments may have now; None if no call makes sense now."""

    async def draft(self, context: "ToolContext", arguments: Arguments, text: str) -> Proposal:
        """Return what would be done, as a draft of a proposal; nothing has an effect yet.

        Raises one of `REFUSALS` with the reason why it cannot be done.
        """

    async def run(self, context: "ToolContext", proposal: Proposal) -> ToolResult:
        """Do what was approved; one of `REFUSALS` becomes a refusal for the model."""


class Tools(Protocol):
    """The tools of a session by name."""

    def allowed_specs(self, names: Sequence[str], *, skills: bool = False) -> tuple[ToolSpec, ...]:
        """Return the specs of a new task: the built-in tools with these names, then those of the sources.

        The tools of skills are among them if `skills` says so, or if they are named.
        """

    async def refresh(self) -> tuple[str, ...]:
        """Ask the sources for their tools; return a sentence for each problem."""

    async def tool(self, name: str) -> Tool:
        """Return a tool; raise `ToolError` if no source brings it now."""

    def follow(self, tool: Tool) -> None:
        """Have a tool found by its name from now on, in place of an earlier one."""

    async def close(self) -> None:
        """Close the sources."""


REFUSALS = (PatchError, WorkspaceError, ShellError, ConfigError, UsageError, RepoError, ToolError)
"""Errors that answer a call; after any other the session itself cannot go on."""


class BuiltinTool(Struct, frozen=True):
    """Base class with name, permission and arguments. Subclasses add `run`, and may override `draft` and `choices`.

    `raw`: the model writes a unified diff instead of arguments, or pieces between fences if it is `fenced`.
    """

    name: str
    summary: str
    permission: Permission = Permission.READ
    arguments: tuple[Argument, ...] = ()
    raw: bool = False
    fenced: bool = False

    @property
    def spec(self) -> ToolSpec:
        """Spec of the tool: name, summary, permission and JSON schema."""
        schema = "" if self.raw else schema_of(self.arguments)
        return ToolSpec(self.name, self.summary, self.permission, schema, fenced=self.fenced)

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return no choices: every value that fits the schema is allowed."""
        return {}

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the call as requested; raise `UsageError` for a value that is not among the choices."""
        try:
            check_choices(arguments, await self.choices(context.scope, context.files) or {})
        except ArgumentFault as fault:
            raise UsageError(str(fault)) from fault
        return KINDS[self.permission](text=text)

    def read(self, text: str) -> Arguments:
        """Parse the arguments in the text of a proposal; raise `ArgumentFault`."""
        return read_arguments(text, self.spec)
