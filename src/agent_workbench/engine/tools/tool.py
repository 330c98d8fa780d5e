"""What a tool is: a schema, a permission class, and what it does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import ConfigError, PatchError, RepoError, ShellError, UsageError, WorkspaceError
from agent_workbench.core.events import ActionResult, Event
from agent_workbench.core.patch import Patch
from agent_workbench.core.proposals import Preimage, Proposal, SummaryEstimate
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.settings import Permission
from agent_workbench.engine.runtime.scope import Files, Scope
from agent_workbench.engine.tools.arguments import Argument, ArgumentFault, Arguments, Choices, check_choices

if TYPE_CHECKING:
    from agent_workbench.engine.runtime.tool_context import ToolContext


class Draft(Struct, frozen=True):
    """What a call comes to before it is decided: the parts of a proposal that the tool knows.

    `patch` is the patch of which `diff` is the text.
    """

    text: str
    diff: str = ""
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    preimages: tuple[Preimage, ...] = ()
    purpose: CheckPurpose | None = None
    repaired: tuple[str, ...] = ()
    fallback: bool = False
    outlook: SummaryEstimate | None = None
    brings: tuple[str, ...] = ()
    patch: Patch | None = None


class Outcome(Struct, frozen=True):
    """What a call came to. `effects` are recorded, in order, before the action is recorded as finished.

    `shown` are the lines of files that the observation shows, exactly as it shows them.
    """

    observation: str
    result: ActionResult = ActionResult.OK
    effects: Sequence[Event] = ()
    output: str = ""
    cut_bytes: int = 0
    shown: tuple[Chunk, ...] = ()


class Tool(Protocol):
    """A tool; one module in this package holds one as `TOOL`. `raw` ones take the rest of the answer as it is."""

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def summary(self) -> str:
        """One sentence for the prompt."""

    @property
    def kind(self) -> Permission:
        """Which gate it goes through."""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Its schema."""

    @property
    def raw(self) -> bool:
        """True when it takes text instead of arguments."""

    @property
    def offered(self) -> bool:
        """True when a model may call it; the others are the workbench's own."""

    async def choices(self, scope: Scope, present: Files) -> Choices | None:
        """Return what may be chosen for arguments that have a choice now; None when the call makes no sense now."""

    async def draft(self, context: "ToolContext", arguments: Arguments, text: str) -> Draft:
        """Return what would be done, or raise a `WorkbenchError` saying why it cannot be; nothing has an effect yet."""

    async def run(self, context: "ToolContext", proposal: Proposal) -> Outcome:
        """Do what was approved. A `WorkbenchError` becomes a refusal the model is told."""


class ToolFace(Struct, frozen=True):
    """The plain facts of a tool; tools inherit from it and add `draft` and `run`."""

    name: str
    summary: str
    kind: Permission = Permission.READ
    arguments: tuple[Argument, ...] = ()
    raw: bool = False
    offered: bool = True

    async def choices(self, scope: Scope, present: Files) -> Choices | None:
        """Return no choices: every value that fits the schema may be tried."""
        return {}

    async def draft(self, context: "ToolContext", arguments: Arguments, text: str) -> Draft:
        """Return the call as it was asked for; raise `UsageError` for a value that there is no choice of."""
        try:
            check_choices(arguments, await self.choices(context.scope, context.workspace) or {})
        except ArgumentFault as fault:
            raise UsageError(str(fault)) from fault
        return Draft(text)


REFUSALS = (PatchError, WorkspaceError, ShellError, ConfigError, UsageError, RepoError)
"""Errors that are an answer to what was asked for; any other means that the workbench itself cannot go on."""
