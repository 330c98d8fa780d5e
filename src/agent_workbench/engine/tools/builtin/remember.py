"""Tool `remember`: a note that outlives the task, proposed by the model and shown as a diff."""

from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.events import OfferedNote
from agent_workbench.core.knowledge import compose_note, name_in_path, note_name
from agent_workbench.core.proposal_kinds import KnowledgeProposal
from agent_workbench.core.proposals import Proposal, with_patch
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments
from agent_workbench.engine.knowledge.note_diff import diff_notes, shown_title, write_notes
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool

ORIGIN = "written by the model"


class Remember(BuiltinTool, frozen=True):
    """Tool that writes a note. The text of its proposal is the note's body; name and title are in the diff."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the diff of the note's file; raise `UsageError` for a note that cannot be written.

        Without arguments `text` is the body that the user wrote for the proposal, or that is shown again.
        """
        body = arguments.text("text").strip() if arguments.values else text.strip()
        if not body:
            raise UsageError("the note is empty", advice="say what is to be remembered")
        shown = context.run.gate.proposal if not arguments.values else None
        title = arguments.text("title").strip() if shown is None else shown_title(shown)
        name = note_name(title) if shown is None else name_in_path(shown.paths[0])
        note = OfferedNote(name, compose_note(title, body), ORIGIN)
        try:
            made = await diff_notes(context.ports.knowledge, context.settings.memory.dir, (note,))
        except StorageError as error:
            raise UsageError(str(error), advice=error.advice) from error
        drafted = KnowledgeProposal(
            text=body,
            diff=made.diff,
            paths=made.paths,
            special=made.existing,
            preimages=made.preimages,
            similar=made.similar,
        )
        return with_patch(drafted, made.patch)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Write exactly what was approved."""
        try:
            paths = await write_notes(context.ports.knowledge, proposal)
        except StorageError as error:
            raise UsageError(str(error), advice=error.advice) from error
        return ToolResult(f"remembered in {', '.join(paths)}")


TOOL = Remember(
    name="remember",
    summary="propose a note for later tasks: what was learnt that holds beyond this task",
    permission=Permission.KNOWLEDGE,
    arguments=(
        Argument("title", ArgumentKind.STRING, "", max_length=100),
        Argument("text", ArgumentKind.STRING, "a few lines of markdown", max_length=4_000),
    ),
)
