"""Preview of a fork: its first event and files."""

from collections.abc import Sequence

from agent_workbench.core.repo.workspace import FileStat
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line

MAX_FILES = 8


def fork_lines(state: SessionState, why: str, files: Sequence[FileStat]) -> tuple[str, ...]:
    """Return a few lines: where a fork begins (`why`: earlier than requested), and with which files."""
    begins = f"It continues after event {state.seq}, {state.time[:16].replace('T', ' ')}."
    said = (begins, f"{why[0].upper()}{why[1:]}.") if why else (begins,)
    run = state.run
    if run is None:
        return (*said, "", "No task was started by then.")
    notes, waits = state.scratchpad(run.task), run.gate.waiting
    waiting = (f"Waiting there: {sanitize_line(waits.described, 200)}",) if waits is not None else ()
    return (
        *said,
        "",
        sanitize_line(f"{run.task}  {run.definition.title}"),
        f"{counted_text(run.step, 'step')}, {counted_text(run.tokens, 'token')}",
        *waiting,
        "",
        *(("Files as they were, changed so far:",) if files else ("Files as they were: none is changed so far.",)),
        *(f"  {file_line(each)}" for each in files[:MAX_FILES]),
        *((f"  and {len(files) - MAX_FILES} more",) if len(files) > MAX_FILES else ()),
        *((f"Notes as they were: {counted_text(len(notes.splitlines()), 'line')}.",) if notes else ()),
        "",
        "It has a branch, a workspace and notes of its own. The session it comes from stays as it is.",
    )


def file_line(stat: FileStat) -> str:
    """Return a file with its added and removed lines."""
    return f"{sanitize_line(stat.path, 200)}  {stat.text}"
