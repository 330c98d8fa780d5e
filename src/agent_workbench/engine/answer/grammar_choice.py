"""Choice of the grammar for an answer: the tools and arguments that are possible now."""

import asyncio

from agent_workbench.core.model import Purpose
from agent_workbench.core.patch import FileContent
from agent_workbench.core.patch.grammar.diff_grammar import diff_rules
from agent_workbench.engine.answer.grammar import reflexion_grammar, step_grammar, summary_grammar
from agent_workbench.engine.answer.offered_lines import edit_scope
from agent_workbench.engine.runtime.scope import Scope, TaskFiles
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.tools.registry import builtin_tools


async def granted(session: SessionContext, purpose: Purpose) -> str:
    """Return the grammar (GBNF) of the next answer, made from the lines in the prompt and the current files."""
    if purpose is not Purpose.EXECUTOR:
        return grammar_besides(purpose)
    context = await session.tool_context()
    return await step_granted(context.scope, context.workspace)


def grammar_besides(purpose: Purpose) -> str:
    """Return the grammar of an answer that is not a step."""
    if purpose is Purpose.SUMMARY:
        return summary_grammar()
    return reflexion_grammar() if purpose is Purpose.REFLEXION else ""


async def step_granted(scope: Scope, present: TaskFiles) -> str:
    """Return the grammar of the steps that are possible in this scope with these files."""
    present = _ListedOnce(present)
    specs, tools = scope.run.specs, builtin_tools()
    choices = {spec.name: await tools[spec.name].choices(scope, present) for spec in specs if spec.name in tools}
    sensible = {name: found for name, found in choices.items() if found is not None}
    offered = [spec for spec in specs if spec.name in sensible or spec.name not in choices] or specs
    diff: tuple[str, ...] = ()
    if any(spec.raw for spec in offered):
        diff = await asyncio.to_thread(diff_rules, await edit_scope(scope, present))
    return await asyncio.to_thread(step_grammar, offered, diff, sensible)


class _ListedOnce:
    """Files listed once: in a large repository listing takes longer than all the rest."""

    def __init__(self, files: TaskFiles) -> None:
        self._files = files
        self._paths: tuple[str, ...] | None = None

    async def list_files(self) -> tuple[str, ...]:
        if self._paths is None:
            self._paths = await self._files.list_files()
        return self._paths

    async def read(self, path: str) -> FileContent | None:
        return await self._files.read(path)
