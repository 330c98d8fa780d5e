"""The end of what was to become of a scratchpad that is too long."""

from msgspec.structs import replace

from agent_workbench.core.state.session_state import TaskRun


def with_notes_settled(run: TaskRun, chars: int) -> TaskRun:
    """Return the run where it goes on, with a scratchpad of `chars` characters that is not asked about again."""
    return replace(run, phase=run.compacts_for, notes_full=False, notes_settled=chars)
