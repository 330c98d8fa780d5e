"""Fold step shared by several groups: the end of a compaction of the scratchpad."""

from msgspec.structs import replace

from agent_workbench.core.state.session_state import TaskRun


def with_notes_settled(run: TaskRun, chars: int) -> TaskRun:
    """Return the run in its former phase; a scratchpad of `chars` characters is not summarised again."""
    return replace(run, phase=run.compacts_for, notes_full=False, notes_settled=chars)
