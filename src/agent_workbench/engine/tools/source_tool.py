"""Adapter of an external tool, which an MCP server, a skill or the consultant (a `ToolSource`) provides, and the answer
to the question of such a server."""

import asyncio
from collections.abc import Iterator, Mapping

from agent_workbench.core.errors import ToolError, UsageError
from agent_workbench.core.events import ActionResult
from agent_workbench.core.ports.tools import QuestionAnswer, SchemaValidator, SourceQuestion, SourceResult, ToolSource
from agent_workbench.core.proposal_kinds import ExternalProposal
from agent_workbench.core.proposals import ANSWER_SERVER, KINDS, Proposal, Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments, Choices
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import (
    JsonError,
    JsonValue,
    indented_json,
    one_line,
    read_bounded_json,
    read_json,
)
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.runtime.publisher import TAIL_CHARS
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext

OBSERVED_CHARS = 6_000
READ_CHARS = 24_000
"""Characters of a text that was asked for, as of a file."""
KEPT_CHARS = 200_000
NO_FORM = '{"type":"object","properties":{},"additionalProperties":false}'
_SENT = {
    Verdict.APPROVE: QuestionAnswer.ACCEPT,
    Verdict.REJECT: QuestionAnswer.DECLINE,
    Verdict.SKIP: QuestionAnswer.CANCEL,
    Verdict.ABORT: QuestionAnswer.CANCEL,
}


class SourceTool:
    """The tool `spec` of `source`. Its spec must not change during a task; `schemas` checks its arguments."""

    def __init__(self, spec: ToolSpec, source: ToolSource, schemas: SchemaValidator) -> None:
        self.spec = spec
        self._source = source
        self._schemas = schemas

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return no choices: every value that fits the schema is allowed."""
        return {}

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the arguments as one line of JSON.

        Raises `UsageError` if they do not match the schema, or the source knows that the call cannot be made.
        """
        self._check_unchanged(context)
        line = one_line(dict(arguments.values))
        problem = await self._schemas.problem(self.spec.input_schema, line)
        if problem := problem or await self._source.obstacle(self.spec.name, line):
            raise UsageError(problem)
        return KINDS[self.spec.permission](text=line)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Call the tool with the approved arguments; the time limit is that of a command."""
        self._check_unchanged(context)
        seconds = context.command_seconds()
        try:
            async with asyncio.timeout(seconds):
                answer = await self._source.call(self.spec.name, proposal.text, context.on_output)
        except TimeoutError:
            return unanswered(self.spec, f"no answer came within {seconds:g} s", context.on_output.text)
        except ToolError as error:
            return unanswered(self.spec, str(error))
        return answered(self.spec, answer, self._schemas)

    def _check_unchanged(self, context: ToolContext) -> None:
        """Raise `ToolError` if the task or the chat did not start with this spec."""
        if self.spec not in context.specs:
            raise ToolError(
                f"the definition of {self.spec.name} of {self.spec.source} changed after the start",
                advice="use another tool; a new task starts with the new definition",
            )


def answered(spec: ToolSpec, answer: SourceResult, schemas: SchemaValidator) -> ToolResult:
    """Return the result of a call that a source answered, or asks a person about."""
    text = answer.text.encode("utf-8", "replace").decode()
    most = READ_CHARS if spec.permission is Permission.READ else OBSERVED_CHARS
    return ToolResult(
        clip(text.strip(), most) or "(no text)",
        ActionResult.FAILED if answer.failed else ActionResult.OK,
        output=text[:KEPT_CHARS],
        cut_bytes=answer.cut_bytes + len(text[KEPT_CHARS:].encode()),
        follow=AnswerTool(spec, answer.question, schemas) if answer.question is not None else None,
    )


def unanswered(spec: ToolSpec, reason: str, output: str = "") -> ToolResult:
    """Return the result of a failed call, which may have had effects nevertheless; `output` came before it."""
    what = f"{spec.name} of {spec.source} failed: {clip(reason, OBSERVED_CHARS)}"
    tail = f"\nThe end of its output:\n{clip(output.strip(), TAIL_CHARS)}" if output.strip() else ""
    return ToolResult(f"{what}\nWhat it did until then is unknown.{tail}", ActionResult.FAILED, output=output)


class AnswerTool:
    """A person's answer to a question that the server asks before the call of the tool `asking` has a result.

    The text of its proposal is the form's values as JSON, `null` for what a person has to fill in. An approval sends
    them, a rejection declines, a skip cancels: the server is told of each, and the call goes on.
    """

    def __init__(self, asking: ToolSpec, question: SourceQuestion, schemas: SchemaValidator) -> None:
        self._asking = asking
        self._question = question
        self._schemas = schemas
        self.spec = ToolSpec(
            ANSWER_SERVER,
            f"answer the question of {asking.source}",
            Permission.EXTERNAL,
            question.schema or NO_FORM,
            asking.source,
            (f"asks during the call of {asking.name}:", question.message, *_page(question.url), *_fields(self._form)),
            asking.server,
        )

    @property
    def _form(self) -> dict[str, JsonValue]:
        read = read_json(self._question.schema or NO_FORM)
        return read if isinstance(read, dict) else {}

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices | None:
        """Return None: the model does not call it."""
        return None

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the defaults of the form, or the person's `text`; raise `UsageError` if it does not fit the form."""
        if not text:
            return ExternalProposal(text=_indented(_defaults(self._form)))
        try:
            values = read_bounded_json(text)
        except JsonError as error:
            raise UsageError(f"the answer is no JSON: {error}", advice="write one object, {...}") from error
        problem = await self._schemas.problem(self.spec.input_schema, one_line(values))
        if problem:
            raise UsageError(f"the answer does not fit the form: {problem}")
        return ExternalProposal(text=_indented(values))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Send the decision, and the values of an approved answer; the time limit is that of a command."""
        work = context.state.main
        decision = work.gate.decision if work is not None else None
        verdict = decision.verdict if decision is not None else Verdict.SKIP
        seconds = context.command_seconds()
        try:
            async with asyncio.timeout(seconds):
                answer = await self._question.reply(_SENT[verdict], proposal.text, context.on_output)
        except TimeoutError:
            return unanswered(self._asking, f"no answer came within {seconds:g} s", context.on_output.text)
        except ToolError as error:
            return unanswered(self._asking, str(error))
        return answered(self._asking, answer, self._schemas)


def _page(url: str) -> tuple[str, ...]:
    if not url:
        return ()
    host = url.partition("://")[2].partition("/")[0]
    return (f"It wants you to open a page of {host}, which is not opened for you:", url)


def _fields(form: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield a line for each field of a form."""
    properties, required = form.get("properties"), form.get("required")
    named = required if isinstance(required, list) else []
    for name, field in properties.items() if isinstance(properties, dict) else ():
        yield f"{name}{' (required)' if name in named else ''}: {one_line(field)}"


def _defaults(form: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    properties, required = form.get("properties"), form.get("required")
    named = required if isinstance(required, list) else []
    fields = properties if isinstance(properties, dict) else {}
    return {
        name: field.get("default")
        for name, field in fields.items()
        if isinstance(field, dict) and ("default" in field or name in named)
    }


def _indented(values: JsonValue) -> str:
    return indented_json(one_line(values))
