"""Tool of the workbench that runs the checks: baseline, after a diff, and before the commit."""

from asyncio import to_thread

from agent_workbench.core.checks.results import CheckPurpose, all_passed
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import FAILING_FIRST, ActionFinished, ActionResult, TestsFinished
from agent_workbench.core.events.output_digests import digest_results
from agent_workbench.core.proposals import CHECKS, Proposal
from agent_workbench.core.repo.absent_sources import missed_sources, unlinked
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import wants_these_failures
from agent_workbench.engine.prompt.repeated_lines import change_shown
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.check_runs import describe_checks, named_paths, run_checks
from agent_workbench.engine.tools.failure_search import code_for_failure, code_text

HEADINGS = {CheckPurpose.BASELINE: "Before any change:\n", CheckPurpose.FINAL: "The final checks:\n"}
WANTED = "Only the new tests fail, as they should before the change that they are about. Make that change now."


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
    finishes = (each.event for each in context.run.history if isinstance(each.event, ActionFinished))
    if any(each.result is ActionResult.REFUSED for each in finishes):
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
