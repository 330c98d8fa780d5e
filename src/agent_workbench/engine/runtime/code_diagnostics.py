"""Diagnostics of language servers about the diffs of a task."""

from collections.abc import Sequence

from agent_workbench.core.approval_rules import is_foreign
from agent_workbench.core.checks.language_servers import Diagnostic, permitted_servers
from agent_workbench.core.events import PatchApplied
from agent_workbench.core.ports.tools import AppliedDiff
from agent_workbench.core.settings import Permission
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import ToolResult


def prepare_diagnostics(session: SessionContext, paths: Sequence[str]) -> None:
    """Let language servers look at files that a diff may change soon: those in a prompt, or of a proposed diff."""
    servers, run = session.ports.language_servers, session.state.run
    if servers is not None and run is not None and not (run.definition.edits or run.definition.changes_nothing):
        servers.prepare(run.workspace.path, tuple(dict.fromkeys(paths)), _permitted(session))


async def find_diagnostics(session: SessionContext, base: str, outcome: ToolResult) -> tuple[Diagnostic, ...]:
    """Return the diagnostics that the diff of an action added to its files, and those of an earlier one that were late.

    `base` is the tree of the approved content before the action. A task with edits of its own asks no model, so nobody
    would read them.
    """
    servers, run = session.ports.language_servers, session.state.run
    if servers is None or run is None or run.definition.edits:
        return ()
    applied = any(isinstance(effect, PatchApplied) for effect in outcome.effects)
    if not applied or not outcome.changes:
        return servers.late(run.tree)
    diff = AppliedDiff(run.workspace.path, base, run.tree, outcome.changes)
    return await servers.compare(diff, _permitted(session))


def _permitted(session: SessionContext) -> set[str]:
    """Return the names of the servers that may be used for the task."""
    run = session.run
    commands = (each.rule.commands for each in session.state.rules if each.rule.kind is Permission.COMMAND)
    return permitted_servers(
        session.settings.language_servers,
        checked=bool(run.baseline or run.results),
        foreign=is_foreign(run.definition),
        commands={line for lines in commands for line in lines},
    )
