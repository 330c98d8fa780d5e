"""Choice of the GBNF grammar that is sent with a prompt; `grammar` builds the text."""

import asyncio
from collections.abc import Sequence

from agent_workbench.core.model import Purpose
from agent_workbench.core.patch.grammar.diff_grammar import EditScope, diff_rules, new_file_rules
from agent_workbench.core.patch.rewrite.file_piece import FilePiece
from agent_workbench.core.patch.rewrite.piece_grammar import piece_rules
from agent_workbench.core.patch.values import FileContent
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.answer.grammar import reflexion_grammar, step_grammar, summary_grammar
from agent_workbench.engine.answer.offered_lines import edit_scope, standing_pieces
from agent_workbench.engine.answer.useful_tools import useful_tools
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.registry import builtin_tools


async def choose_grammar(session: SessionContext, purpose: Purpose) -> str:
    """Return the grammar (GBNF) for the next answer to this purpose."""
    if purpose is not Purpose.EXECUTOR:
        return fixed_grammar(purpose)
    context = await session.tool_context()
    return await possible_steps_grammar(context.scope, context.workspace)


def fixed_grammar(purpose: Purpose) -> str:
    """Return the grammar for a summary or a reflexion, which depends on no files; empty for other purposes."""
    if purpose is Purpose.SUMMARY:
        return summary_grammar()
    return reflexion_grammar() if purpose is Purpose.REFLEXION else ""


async def chat_grammar(context: ToolContext, specs: Sequence[ToolSpec]) -> str:
    """Return the grammar for an answer in a chat: a reply, or a call of one of these tools that is possible now."""
    present, tools = _ListedOnce(context.files), builtin_tools()
    choices = {spec.name: await tools[spec.name].choices(context.scope, present) for spec in specs if spec.builtin}
    sensible = {name: found for name, found in choices.items() if found is not None}
    offered = [spec for spec in specs if spec.name in sensible or spec.name not in choices]
    return await asyncio.to_thread(step_grammar, offered, (), sensible, replies=True)


async def possible_steps_grammar(scope: TaskBounds, present: TaskFiles) -> str:
    """Return the grammar for a step: only tools and arguments that are possible with these files."""
    present = _ListedOnce(present)
    specs, tools = scope.run.specs, builtin_tools()
    choices = {spec.name: await tools[spec.name].choices(scope, present) for spec in specs if spec.name in tools}
    sensible = {name: found for name, found in choices.items() if found is not None}
    possible = [spec for spec in specs if spec.name in sensible or spec.name not in choices] or specs
    offered, useful = await useful_tools(scope, present, possible, sensible)
    diff: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()
    if any(spec.raw for spec in offered):
        edits = await edit_scope(scope, present)
        if any(spec.raw and not spec.fenced for spec in offered):
            diff = await asyncio.to_thread(diff_rules, edits)
        if any(spec.fenced for spec in offered):
            standing = await standing_pieces(scope, present)
            pieces = await asyncio.to_thread(_piece_rules, scope.run, standing, edits)
    return await asyncio.to_thread(step_grammar, offered, diff, useful, pieces)


def _piece_rules(run: TaskRun, pieces: Sequence[FilePiece], edits: EditScope) -> tuple[str, ...]:
    if pieces and run.failed_before and not run.changed:
        return piece_rules(pieces, (), ())
    near = tuple(sorted({piece.path.rpartition("/")[0] for piece in pieces}))
    names, name_rules = new_file_rules(edits.existing, edits.bounds, near)
    return piece_rules(pieces, names, name_rules)


class _ListedOnce:
    """Cache of the list of files: in a large repository, listing takes longer than all the rest."""

    def __init__(self, files: TaskFiles) -> None:
        self._files = files
        self._paths: tuple[str, ...] | None = None

    async def list_files(self) -> tuple[str, ...]:
        if self._paths is None:
            self._paths = await self._files.list_files()
        return self._paths

    async def read(self, path: str) -> FileContent | None:
        return await self._files.read(path)
