"""Base class of the built-in tools."""

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.proposals import KINDS, Proposal
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
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.tool_context import ToolContext


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
