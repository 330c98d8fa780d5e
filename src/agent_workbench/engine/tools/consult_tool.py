"""Tool `consult`: ask a consultant; its answer is an observation and nothing more."""

from agent_workbench.core.consult_requests import (
    FILES,
    OFFERED,
    ROOT,
    ConsultantFacts,
    ConsultRequest,
    consultant_named,
)
from agent_workbench.core.errors import ModelError, UsageError, error_text
from agent_workbench.core.events import ActionResult
from agent_workbench.core.live import Streaming
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.sanitizer import without_chat_markers
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments, Choices
from agent_workbench.engine.consult_context import ConsultContext
from agent_workbench.engine.consultation import consult
from agent_workbench.engine.runtime.budget import clip, dollars_left
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext

OBSERVED_CHARS = 6_000


class Consult(BuiltinTool, frozen=True):
    """Tool that asks a consultant about the task's files, an error or requirements."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices:
        """Return the consultants."""
        return {"consultant": OFFERED}

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the question; raise `UsageError` for one that its consultant does not take."""
        request = _request(arguments, context.state.session)
        _check(request, consultant_named(request.skill))
        return await super().draft(context, arguments, text)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Ask, and return the answer."""
        request, run = _request(self.read(proposal.text), context.state.session), context.state.run
        shown = 0

        def show(streaming: Streaming) -> None:
            nonlocal shown
            context.on_output(streaming.text[shown:])
            shown = len(streaming.text)

        asking = ConsultContext(
            context.ports,
            context.settings,
            context.newest_state,
            context.record,
            context.files,
            context.may_read,
            show=show,
            dollars_left=dollars_left(run) if run is not None else None,
        )
        try:
            answer = await consult(asking, request)
        except ModelError as error:
            return ToolResult(f"the consultant did not answer: {error_text(error)}", ActionResult.FAILED)
        told = f"{request.skill} answered:\n{clip(without_chat_markers(answer.text), OBSERVED_CHARS)}"
        return ToolResult(told, output=answer.text)


def _request(arguments: Arguments, session: str) -> ConsultRequest:
    """Return the request that a call stands for: the question and the files take the places of the arguments."""
    facts = consultant_named(arguments.text("consultant"))
    question = arguments.text("question")
    files = tuple(path for path in (each.strip() for each in arguments.text("files").split(",")) if path)
    names = [name for name in facts.arguments if name in facts.paths and name != FILES]
    fields = list(zip(names, files, strict=False))
    texts = [name for name in facts.required if name not in {ROOT, *facts.paths}]
    if question and (texts or "context" in facts.optional):
        fields.append((texts[0] if texts else "context", question))
    return ConsultRequest(facts.name, tuple(fields), files if FILES in facts.paths else (), session=session)


def _check(request: ConsultRequest, facts: ConsultantFacts) -> None:
    wanted = [name for name in facts.required if name != ROOT]
    if missing := [name for name in wanted if not request.field(name).strip()]:
        where = "files" if missing[0] in facts.paths else "question"
        raise UsageError(f"{facts.name} needs {missing[0]}", advice=f"give it as {where!r}")


CONSULT_TOOL = Consult(
    name="consult",
    summary="ask a consultant for advice: review and tdd_* judge files, debug an error, spec requirements",
    arguments=(
        Argument("consultant", ArgumentKind.STRING, "review, debug, spec, tdd_red, tdd_green or tdd_refactor"),
        Argument("question", ArgumentKind.STRING, "the error, requirement or context", required=False, max_length=4000),
        Argument("files", ArgumentKind.STRING, "paths, separated by commas", required=False, max_length=1000),
    ),
)

TOOLS = (CONSULT_TOOL,)
