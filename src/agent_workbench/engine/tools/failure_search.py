"""Code search for failing checks: their output is the query, the chunks found go to the model."""

from collections.abc import Iterable, Sequence

from agent_workbench.core.checks.failure_report import report_failure
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import TestsFinished
from agent_workbench.core.repo.retrieval import RELEVANT, Chunk, CodeQuery
from agent_workbench.core.state.event_chunks import chunks_shown_by
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.engine.runtime.tool_context import ToolContext

OUTPUT_CHARS = 1_500
"""Characters of each failing check's output in the query."""
MOST_PIECES = 2
MOST_CHARS = 4_000
"""Limit of code for one failure: it stays in the prompt until the next summary."""
LOOKED_AT = 8
POINTS_TO = "Code that this failure may be about:"


def latest_failures(run: TaskRun) -> str:
    """Return the most informative output of the checks that failed last, empty if all passed."""
    return _failing(run.results if run.results is not None else run.baseline or ())


async def code_for_failure(context: ToolContext, finished: TestsFinished) -> tuple[Chunk, ...]:
    """Return the best chunks for a new failure after a change, without those that the model was shown.

    Empty if the failure is the same as before, or no model is asked in the task.
    """
    failing = _failing(finished.results)
    asked = finished.purpose in (CheckPurpose.AFTER_DIFF, CheckPurpose.FINAL) and not context.task.edits
    if not asked or context.run.acceptable(finished.results) or failing == latest_failures(context.run):
        return ()
    try:
        query = CodeQuery("", failing, floor=RELEVANT)
        found = await context.ports.retriever.search(context.workspace, query, LOOKED_AT)
    except WorkbenchError:
        return ()  # the checks ran, and that is what was asked for; a search of the model's own will tell
    fitting = _fitting(chunk for chunk in found if context.may_read(chunk.path) and not _is_known(context.run, chunk))
    return await context.for_prompt(tuple(fitting))


def code_text(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """Return these chunks as text for the model, empty if there are none."""
    return (POINTS_TO, *(chunk.shown for chunk in chunks)) if chunks else ()


def _failing(results: Iterable[CheckResult]) -> str:
    return "\n".join(report_failure(each.output, OUTPUT_CHARS) for each in results if not each.passed)


def _fitting(chunks: Iterable[Chunk]) -> Iterable[Chunk]:
    room = MOST_CHARS
    for _, chunk in zip(range(MOST_PIECES), chunks, strict=False):
        size = len(chunk.context) + len(chunk.text)
        if size <= room:
            room -= size
            yield chunk


def _is_known(run: TaskRun, chunk: Chunk) -> bool:
    """Return True if lines of the chunk were shown since the task started, or the user dropped it."""
    shown = (each for recorded in run.history for each in chunks_shown_by(recorded.event) if each.path == chunk.path)
    overlaps = any(each.first_line <= chunk.last_line and chunk.first_line <= each.last_line for each in shown)
    return overlaps or chunk.place in run.dropped
