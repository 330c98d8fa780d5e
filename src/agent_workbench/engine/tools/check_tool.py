"""Tool that runs the checks, before, after a diff and at the commit, and code search for failures."""

from asyncio import to_thread
from collections.abc import Iterable, Sequence

from agent_workbench.core.checks.failure_report import report_failure
from agent_workbench.core.checks.results import CheckPurpose, CheckResult, all_passed
from agent_workbench.core.errors import WorkbenchError, WorkspaceError
from agent_workbench.core.events import FAILING_FIRST, ActionResult, TestsFinished
from agent_workbench.core.events.output_digests import digest_results
from agent_workbench.core.proposals import CHECKS, Proposal
from agent_workbench.core.repo.absent_sources import missed_sources, unlinked
from agent_workbench.core.repo.retrieval import RELEVANT, Chunk, CodeQuery
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import wants_these_failures
from agent_workbench.core.state.event_chunks import chunks_shown_by
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.engine.prompt.repeated_lines import change_shown
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.check_runs import describe_checks, named_paths, run_checks

HEADINGS = {CheckPurpose.BASELINE: "Before any change:\n", CheckPurpose.FINAL: "The final checks:\n"}
WANTED = "Only the new tests fail, as they should before the change that they are about. Make that change now."

OUTPUT_CHARS = 1_500
"""Characters of each failing check's output in the query."""
MOST_PIECES = 2
MOST_CHARS = 4_000
"""Limit of code for one failure: it stays in the prompt until the next summary."""
LOOKED_AT = 8
POINTS_TO = "Code that this failure may be about:"


class Checks(BuiltinTool, frozen=True):
    """Tool of the workbench that runs the commands of an approved check proposal."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Run every command and report the results."""
        finished = await run_checks(context, proposal.commands, proposal.purpose or CheckPurpose.ASKED)
        if finished.purpose is CheckPurpose.BASELINE and not all_passed(finished.results):
            await _check_complete(context, finished)
        history, baseline = context.run.history, context.run.baseline
        # The journal gets the whole output; the observation is made from the digest that a session keeps.
        kept = await to_thread(digest_results, finished)
        root = context.workspace.facts.path
        brief = context.run.wording >= FAILING_FIRST
        described = await to_thread(lambda: describe_checks(kept, baseline, change_shown(history), root, brief=brief))
        told = HEADINGS.get(finished.purpose, "") + described
        if await to_thread(wants_these_failures, context.run, kept):
            told += f"\n\n{WANTED}"
        new = await code_for_failure(context, kept)
        return ToolResult("\n\n".join((told, *code_text(new))), effects=(finished,), shown=new)


async def _check_complete(context: ToolContext, finished: TestsFinished) -> None:
    """Raise `WorkspaceError` if the baseline misses files that the user's checkout has, the first time in a task."""
    results = (step.result.event.result for step in newest_steps(context.run.history) if step.result is not None)
    if ActionResult.REFUSED in results:
        return
    checkout = await context.ports.workspaces.checkout_files()
    absent = unlinked(await checkout.absent_sources(), context.workspace.facts.linked)
    output = "\n".join(each.output for each in finished.results if not each.passed)
    if missed := await to_thread(missed_sources, output, absent):
        names = ", ".join(named_paths(missed))
        links = ", ".join((*context.settings.workspace.link, *missed))
        raise WorkspaceError(
            f"the checks fail because the workspace lacks {names}, which the checkout has",
            advice=f"set workspace.link: [{links}] in .agent.yml and open the session again; a retry goes on without",
        )


CHECKS_TOOL = Checks(name=CHECKS, summary="run the task's checks", permission=Permission.CHECK)


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
