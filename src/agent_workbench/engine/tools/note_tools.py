"""Tools for notes: `note` in the scratchpad, and `query_knowledge` and `remember` for those that outlive the task."""

from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.events import Author, OfferedNote
from agent_workbench.core.knowledge import compose_note, name_in_path, note_name
from agent_workbench.core.proposal_kinds import KnowledgeProposal
from agent_workbench.core.proposals import Proposal, with_patch
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments
from agent_workbench.engine.notes import diff_notes, find_knowledge, note_text, shown_title, write_notes
from agent_workbench.engine.prompt.scratchpad import notes_changed
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext

MAX_TOKENS = 1_500

ORIGIN = "written by the model"


class NoteTool(BuiltinTool, frozen=True):
    """Tool that appends to the notes that the model and the user share."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Append the note."""
        text = self.read(proposal.text).text("text").strip()
        memory, task, fork = context.ports.memory, context.task.id, context.run.fork
        before = await memory.read_scratchpad(task, fork)
        gap = "" if not before or before.endswith("\n") else "\n"
        after = await memory.write_scratchpad(task, before, f"{before}{gap}- {text}\n", fork)
        return ToolResult("noted", effects=(notes_changed(context.settings, task, after, Author.MODEL),))


NOTE_TOOL = NoteTool(
    name="note",
    summary="keep a line in the task's scratchpad",
    arguments=(Argument("text", ArgumentKind.STRING, "", max_length=600),),
)


class QueryKnowledge(BuiltinTool, frozen=True):
    """Tool that finds notes for a question."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the best notes with their paths."""
        query = self.read(proposal.text).text("query")
        memory = context.settings.memory.dir
        found = await find_knowledge(
            context.ports.knowledge, memory, query, limit=5, max_tokens=MAX_TOKENS, least_words=1
        )
        problem = f" ({found.problem})" if found.problem else ""
        if not found.notes:
            return ToolResult(f"no note was found for {query!r}{problem}")
        return ToolResult("\n\n".join(f"{note.place}\n{note_text(note)}" for note in found.notes))


QUERY_KNOWLEDGE_TOOL = QueryKnowledge(
    name="query_knowledge",
    summary="find notes of earlier tasks by words",
    arguments=(Argument("query", ArgumentKind.STRING, "", max_length=400),),
)


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


REMEMBER_TOOL = Remember(
    name="remember",
    summary="propose a note for later tasks: what was learnt that holds beyond this task",
    permission=Permission.KNOWLEDGE,
    arguments=(
        Argument("title", ArgumentKind.STRING, "", max_length=100),
        Argument("text", ArgumentKind.STRING, "a few lines of markdown", max_length=4_000),
    ),
)

TOOLS = (NOTE_TOOL, QUERY_KNOWLEDGE_TOOL, REMEMBER_TOOL)
