"""Runs of tests and lint in the workspace, which is restored after each, and the tool that proposes them."""

import re
from asyncio import to_thread
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.failure_report import failed_tests, report_failure, report_hang
from agent_workbench.core.checks.results import CheckPurpose, CheckResult, all_passed
from agent_workbench.core.command_lines import denial
from agent_workbench.core.errors import ShellError, WorkbenchError, WorkspaceError
from agent_workbench.core.events import FAILING_FIRST, ActionResult, TestsFinished
from agent_workbench.core.fold.output_digests import digest_results
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.proposals import CHECKS, Proposal
from agent_workbench.core.repo.absent_sources import missed_sources, unlinked
from agent_workbench.core.repo.retrieval import RELEVANT, Chunk, CodeQuery
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings import Permission, Settings
from agent_workbench.core.state.applied_diffs import wants_these_failures
from agent_workbench.core.state.file_pieces import chunks_shown_by
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.engine.prompt.repeated_lines import change_shown, without_repeated
from agent_workbench.engine.runtime.stoppable import StoppedByUser
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext

OUTPUT_CHARS, BRIEF_CHARS = 6_000, 1_300
"""Characters of a failed command's output that a prompt shows: before `FAILING_FIRST`, and since."""
HANG_CHARS = 4_500
TIME_IS_OVER = "the time of the task was used up"
NAMED_TESTS = 10
NAMED_PATHS = 50
_MISREAD = re.compile(r"^$|[\s,\"]")

HEADINGS = {CheckPurpose.BASELINE: "Before any change:\n", CheckPurpose.FINAL: "The final checks:\n"}
WANTED = "Only the new tests fail, as they should before the change that they are about. Make that change now."

QUERY_CHARS = 1_500
"""Characters of each failing check's output in the query."""
MOST_PIECES = 2
MOST_CHARS = 4_000
"""Limit of code for one failure: it stays in the prompt until the next summary."""
LOOKED_AT = 8
POINTS_TO = "Code that this failure may be about:"


class CheckList(Struct, frozen=True):
    """The commands of a task, in order; the first `required` must pass."""

    commands: tuple[str, ...]
    required: int


def check_list(task: Task, settings: Settings) -> CheckList:
    """Return a task's acceptance commands, then the repo's own tests and lint."""
    required = _without_repeats(task.accept_tests) or _without_repeats((settings.test_command,))
    wanted = (*required, settings.test_command, settings.lint_command)
    return CheckList(_without_repeats(wanted), len(required))


def _without_repeats(commands: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in commands if each.strip()))


def refuse_denied(task: Task, lines: Sequence[str]) -> None:
    """Raise `ShellError` for the first command line that the task's patterns of denied commands match."""
    for line in lines:
        if why := denial(line, task.constraints.denylisted_commands):
            raise ShellError(f"{why}: {line[:200]}", advice="its denylisted_commands in the plan say so")


async def run_command(context: ToolContext, line: str, used: float = 0.0, *, joins: bool = False) -> CommandOutcome:
    """Run one command line in the workspace; raise `ShellError` for one that is denied.

    Of the task's time `used` seconds are gone besides the recorded ones. One that `joins` reaches the command that was
    left running; no check does. Raises `StoppedByUser`.
    """
    refuse_denied(context.task, (line,))
    command = await command_of(context, line, used, joins=joins)
    outcome = await context.stoppable.run(context.ports.shell.run(command, context.on_output))
    if outcome.timed_out and command.timeout_seconds < context.command_limit:
        return replace(outcome, reason=f"stopped after {command.timeout_seconds:.3g} s: {TIME_IS_OVER}")
    return outcome


async def command_of(context: ToolContext, line: str, used: float = 0.0, *, joins: bool = False) -> Command:
    """Return a command line as it is run in the workspace."""
    folder = context.workspace.facts.path
    return Command(
        line=line,
        folder=folder,
        timeout_seconds=context.command_seconds(used),
        environment=await context.ports.environment_for(folder),
        private=True,
        linked=context.workspace.facts.linked,
        joins=joins,
    )


async def run_checks(context: ToolContext, commands: Sequence[str], purpose: CheckPurpose) -> TestsFinished:
    """Run the commands in order, each on the approved files; restore and name the files that they change.

    Raises `ShellError` before any is run where one of them is denied, and `StoppedByUser`.
    """
    refuse_denied(context.task, commands)
    results: list[CheckResult] = []
    resets = [await context.workspace.reset(context.run.tree)]
    for line in commands:
        try:
            results.append(await _check(context, line, sum(each.seconds for each in results)))
        except StoppedByUser:
            await context.workspace.reset(context.run.tree)
            raise
        resets.append(await context.workspace.reset(context.run.tree))
    restored = named_paths(path for each in resets for path in each.restored)
    return TestsFinished(
        purpose, tuple(results), restored, named_paths(path for each in resets for path in each.removed)
    )


def named_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return paths for display, each once: the first of very many, and the number of the others.

    A name with blanks, commas or quotes is quoted, or it would be misread in a list.
    """
    names = tuple(dict.fromkeys(f'"{path}"' if _MISREAD.search(path) else path for path in map(shown, paths)))
    more = len(names) - NAMED_PATHS
    return (*names[:NAMED_PATHS], f"and {more} more") if more > 0 else names


async def _check(context: ToolContext, line: str, used: float) -> CheckResult:
    outcome = await run_command(context, line, used)
    # Bounded where it is recorded: what a prompt makes of a record may not change for sessions that there are.
    output = f"{report_hang(outcome.output, HANG_CHARS)}\n{outcome.reason}" if outcome.reason else outcome.output
    return CheckResult(
        command=line,
        exit_code=outcome.exit_code,
        output=output,
        seconds=outcome.seconds,
        failed_tests=() if outcome.exit_code == 0 else await to_thread(failed_tests, output),
        cut_bytes=outcome.cut_bytes,
    )


def _report(output: str, *, brief: bool) -> str:
    return report_failure(output, BRIEF_CHARS, brief=True) if brief else report_failure(output, OUTPUT_CHARS)


def describe_checks(
    finished: TestsFinished,
    baseline: Sequence[CheckResult] | None = None,
    shown: Collection[str] = (),
    root: str = "",
    *,
    brief: bool = False,
) -> str:
    """Return the observation of a check run: results, comparison with the baseline, and the output of failures.

    `baseline` has the results before any change (None: unknown, or this is that run). `shown` are lines of the change
    that the prompt shows elsewhere, and that test runners print again. Paths below `root`, the folder in which the
    checks ran, are told as the repository's. `brief`: a short report of each failed command's output; the task tells
    the command.
    """
    alone = brief and len(finished.results) == 1
    lines = [_verdict(each) if alone else f"{_verdict(each)}  {each.command}" for each in finished.results]
    lines += _compared(finished.results, baseline or ())
    if finished.restored_paths:
        lines.append("These files were changed by the run and put back: " + ", ".join(finished.restored_paths))
    for result in finished.results:
        if not result.passed:
            output = result.output.replace(f"{root}/", "") if root else result.output
            report = without_repeated(_report(output, brief=brief), shown)
            lines.append(report if alone else f"\nOutput of {result.command}:\n{report}")
    head = "All checks passed." if all_passed(finished.results) else "Checks failed."
    return "\n".join([head, *lines]) if finished.results else "There are no checks to run."


def _compared(results: Sequence[CheckResult], baseline: Sequence[CheckResult]) -> list[str]:
    """Return the tests that fail since the change, those that failed before it too, and those that pass now."""
    before = dict.fromkeys(test for result in baseline for test in result.failed_tests)
    now = dict.fromkeys(test for result in results for test in result.failed_tests)
    ran_all = all(result.passed or result.failed_tests for result in results)
    groups = (
        ("Fail since the change", [test for test in now if test not in before] if baseline else []),
        ("Failed before any change too", [test for test in now if test in before]),
        ("Pass since the change", [test for test in before if test not in now] if ran_all else []),
    )
    return [f"{words}: {_named(tests)}" for words, tests in groups if tests]


def _named(tests: Sequence[str]) -> str:
    more = len(tests) - NAMED_TESTS
    return ", ".join(tests[:NAMED_TESTS]) + (f" and {more} more" if more > 0 else "")


def _verdict(result: CheckResult) -> str:
    if result.passed:
        return "passed"
    return "did not end" if result.exit_code is None else f"FAILED ({result.exit_code})"


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
    return "\n".join(report_failure(each.output, QUERY_CHARS) for each in results if not each.passed)


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
