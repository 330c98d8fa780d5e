"""Tool `finish`: the model says that the task is done; checks and a commit gate follow."""

from msgspec.structs import replace

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import ActionRejected, PlaybookFinished
from agent_workbench.core.history.journal_proof import without_anchors
from agent_workbench.core.proposal_kinds import ReadProposal
from agent_workbench.core.proposals import TRAILER, Proposal
from agent_workbench.core.state.applied_diffs import lacks_test
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.commit_subjects import SUBJECT_CHARS, CommitConvention, convention_text, subject_problem
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments, read_arguments
from agent_workbench.core.tools.spec import FINISH, ToolSpec, by_name
from agent_workbench.engine.prompt.attempts import attempts
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext

SUBJECT = "subject"
SUBJECT_REFUSED = "the commit's subject"
NO_TEST = "the task asks for a test, and none is changed"
MOST_REFUSED = 2
"""After so many refused subjects the workbench writes its own, so that no task fails because of one."""


class Finish(BuiltinTool, frozen=True):
    """Tool that ends the steps; the checks decide if the task is done."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the call as requested; raise `UsageError` for a subject that breaks the repository's convention."""
        run = context.run
        problem = _subject_problem(run, arguments)
        if problem and _refused_subjects(run) < MOST_REFUSED:
            raise UsageError(
                f"{SUBJECT_REFUSED} {quoted(arguments.text(SUBJECT))} {problem}",
                advice="call finish again with another subject",
            )
        return ReadProposal(text=text)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the observation."""
        return ToolResult("the task's checks decide whether it is done")


FINISH_TOOL = Finish(
    name=FINISH,
    summary="say that the task is done; its checks are run and a commit is offered",
    arguments=(Argument("summary", ArgumentKind.STRING, "what was changed and why", max_length=600),),
)


def why_rejected(run: TaskRun) -> str:
    """Return the reason to reject a finish, empty to accept it.

    The first one without any changes is rejected, the first one after a failed run of a playbook, and the first one
    without the test that the task asks for.
    """
    if run.definition.changes_nothing:
        return ""
    if lacks_test(run) and not _refusals(run, NO_TEST):
        return (
            f"{NO_TEST}, and the checks passed before any change too, so nothing shows that the change works. Add a "
            "test that fails without it. If none can be written, call finish again and say why in its summary; a "
            "person decides then."
        )
    if run.finish_returned:
        return ""
    ended = [each.event for each in run.history if isinstance(each.event, PlaybookFinished)]
    if ended and ended[-1].failed:
        return (
            f"the last run of {ended[-1].request.playbook} failed. Correct its cause and run it again. If it cannot be "
            "corrected here, call finish again and say why in its summary; a person sees it."
        )
    if run.changed or any(not each.request.check for each in ended):
        return ""
    tried = attempts(run.history)
    last = f" Your last diff does not stand ({tried[-1].told})." if tried else ""
    return (
        f"nothing is changed: the files are as they were when the task began.{last} Make the change that the task asks "
        "for. If it needs none, call finish again and say why in its summary; a person decides then."
    )


def finish_spec(convention: CommitConvention) -> ToolSpec:
    """Return the spec for a new task: with a convention the model writes the subject of its commit too."""
    if convention is CommitConvention.NONE:
        return FINISH_TOOL.spec
    note = (
        f"the commit's subject in this repository's form, at most {SUBJECT_CHARS} characters: "
        f"{convention_text(convention)}; when the commit is rejected, call finish again with a better one"
    )
    subject = Argument(SUBJECT, ArgumentKind.STRING, note, max_length=SUBJECT_CHARS)
    return replace(FINISH_TOOL, arguments=(subject, *FINISH_TOOL.arguments)).spec


def finish_summary(run: TaskRun) -> str:
    """Return the summary of the newest finish, empty if there is none."""
    return _newest_arguments(run).text("summary").strip()


def commit_subject(run: TaskRun) -> str:
    """Return the subject of the newest finish, empty if there is none that follows the convention."""
    arguments = _newest_arguments(run)
    valid = run.commit_convention is not CommitConvention.NONE and not _subject_problem(run, arguments)
    return arguments.text(SUBJECT) if valid else ""


def _newest_arguments(run: TaskRun) -> Arguments:
    calls = (step.first.text for step in newest_steps(run.history) if step.first.tool == FINISH)
    newest = next(calls, None)
    return Arguments({}) if newest is None else read_arguments(newest, by_name(run.specs).get(FINISH, FINISH_TOOL.spec))


def _subject_problem(run: TaskRun, arguments: Arguments) -> str:
    if run.commit_convention is CommitConvention.NONE:
        return ""
    subject = arguments.text(SUBJECT)
    if subject != without_anchors(subject):
        return f"begins with {TRAILER}, which the workbench writes itself"
    return subject_problem(subject, run.commit_convention)


def _refused_subjects(run: TaskRun) -> int:
    return _refusals(run, SUBJECT_REFUSED)


def _refusals(run: TaskRun, beginning: str) -> int:
    """Return how many calls of finish were refused for the reason with this beginning."""
    refusal = f"{FINISH}: {beginning}"
    events = (recorded.event for recorded in run.history)
    return sum(isinstance(event, ActionRejected) and event.reason.startswith(refusal) for event in events)


TOOLS = (FINISH_TOOL,)
