"""Ports of tools from elsewhere: a source that brings them, and the check of their arguments."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.ports.workspace import OnOutput
from agent_workbench.core.tools.spec import ToolSpec


class SourceResult(Struct, frozen=True):
    """Answer of a source's tool: its text for the model, with `cut_bytes` left out.

    `failed`: the tool reported a failure. `structured` is the answer as one JSON object, empty if there is none.
    """

    text: str
    failed: bool = False
    cut_bytes: int = 0
    structured: str = ""


class ToolSource(Protocol):
    """A source of tools: a server, the skills of a repo, a consultant."""

    @property
    def name(self) -> str:
        """The `source` of its specs: `skill`, `consultant` or `mcp:<server>`."""

    async def list_tools(self) -> Sequence[ToolSpec]:
        """Return the specs of the tools that it brings now; raise `ToolError`."""

    async def obstacle(self, tool: str, arguments: str) -> str:
        """Return why a call with these checked arguments cannot be made now, empty if no reason is known.

        It is asked before a person is.
        """

    async def call(self, tool: str, arguments: str, on_output: OnOutput) -> SourceResult:
        """Call a tool with checked arguments (one JSON object); raise `ToolError` if no answer comes.

        Cancelling the call stops it.
        """

    async def close(self) -> None:
        """Release what the source holds."""


class SchemaValidator(Protocol):
    """Check against JSON Schemas in full, in bounded time and memory; nothing is fetched."""

    async def schema_problems(self, schemas: Sequence[str]) -> tuple[str, ...]:
        """Return for each schema why it is invalid, empty where it is valid.

        Raises `ToolError` if the check came to no end.
        """

    async def problem(self, schema: str, value: str) -> str:
        """Return why a JSON value does not fit a valid schema, empty if it fits; raise `ToolError`."""
