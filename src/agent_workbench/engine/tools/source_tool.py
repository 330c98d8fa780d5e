"""Adapter of an external tool: one that an MCP server, a skill or the consultant (a `ToolSource`) provides."""

import asyncio

from agent_workbench.core.errors import ToolError, UsageError
from agent_workbench.core.events import ActionResult
from agent_workbench.core.ports.tools import SchemaValidator, ToolSource
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments, Choices
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import one_line
from agent_workbench.engine.runtime.publisher import TAIL_CHARS
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool import Draft, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext

OBSERVED_CHARS = 6_000
READ_CHARS = 24_000
"""Characters of a text that was asked for, as of a file."""
KEPT_CHARS = 200_000


class SourceTool:
    """The tool `spec` of `source`. Its spec must not change during a task; `schemas` checks its arguments."""

    def __init__(self, spec: ToolSpec, source: ToolSource, schemas: SchemaValidator) -> None:
        self.spec = spec
        self._source = source
        self._schemas = schemas

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return no choices: every value that fits the schema is allowed."""
        return {}

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Draft:
        """Return the arguments as one line of JSON.

        Raises `UsageError` if they do not match the schema, or the source knows that the call cannot be made.
        """
        self._check_unchanged(context)
        line = one_line(dict(arguments.values))
        problem = await self._schemas.problem(self.spec.input_schema, line)
        if problem := problem or await self._source.obstacle(self.spec.name, line):
            raise UsageError(problem)
        return Draft(line)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Call the tool with the approved arguments; the time limit is that of a command."""
        self._check_unchanged(context)
        seconds = context.command_seconds()
        try:
            async with asyncio.timeout(seconds):
                answer = await self._source.call(self.spec.name, proposal.text, context.on_output)
        except TimeoutError:
            return self._unanswered(f"no answer came within {seconds:g} s", context.on_output.text)
        except ToolError as error:
            return self._unanswered(str(error))
        text = answer.text.encode("utf-8", "replace").decode()
        most = READ_CHARS if self.spec.permission is Permission.READ else OBSERVED_CHARS
        return ToolResult(
            clip(text.strip(), most) or "(no text)",
            ActionResult.FAILED if answer.failed else ActionResult.OK,
            output=text[:KEPT_CHARS],
            cut_bytes=answer.cut_bytes + len(text[KEPT_CHARS:].encode()),
        )

    def _unanswered(self, reason: str, output: str = "") -> ToolResult:
        """Return the result of a failed call, which may have had effects nevertheless; `output` came before it."""
        what = f"{self.spec.name} of {self.spec.source} failed: {clip(reason, OBSERVED_CHARS)}"
        tail = f"\nThe end of its output:\n{clip(output.strip(), TAIL_CHARS)}" if output.strip() else ""
        return ToolResult(f"{what}\nWhat it did until then is unknown.{tail}", ActionResult.FAILED, output=output)

    def _check_unchanged(self, context: ToolContext) -> None:
        """Raise `ToolError` if the task or the chat did not start with this spec."""
        if self.spec not in context.specs:
            raise ToolError(
                f"the definition of {self.spec.name} of {self.spec.source} changed after the start",
                advice="use another tool; a new task starts with the new definition",
            )
