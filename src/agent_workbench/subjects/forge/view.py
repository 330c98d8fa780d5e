"""Texts for a forge: the comments on an issue, and the description of a pull request."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.events import ChatReplied, CodeRetrieved, UserSaid
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import steps_of
from agent_workbench.core.state.work import Chat
from agent_workbench.core.task_result import CheckOutcome, TaskResult
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.markdown import cell, code, fenced, plain
from agent_workbench.subjects.inbox.view import proposal_text, view_inbox
from agent_workbench.views.reports.task_report import GateDecision, TaskReport, UndoneChange

MAX_COMMENT_CHARS = 60_000
MAX_CHECKS = 100

MAX_CHANGES = 20
MAX_CHAT_CHARS = 8_000
MAX_FILES = 50
MAX_DECISIONS = 30


class ProposalComment(Struct, frozen=True):
    """Comment about a proposal; it can be decided on the forge only if the comment shows the whole of it."""

    text: str
    decidable: bool


def queued_comment(sha: str, user: str, text: str) -> str:
    """Return the text about an issue that became a task, with what was taken of it; later edits change nothing."""
    said = (
        f"Queued: {plain(user)} set the label. This text is the task, whatever the issue becomes (SHA-256 {code(sha)}):"
    )
    return f"{said}\n\n{fenced(text, limit_chars=MAX_COMMENT_CHARS // 2)}"


def refused_comment(problem: str) -> str:
    """Return the text about a labelled issue that does not become a task."""
    return f"Not queued: {plain(problem)}. Remove the label and set it again to queue the text as it is now."


def working_comment(task: str, session: str) -> str:
    """Return the text while a session works on the task."""
    return f"Working on {code(task)} in session {code(session)}."


def waiting_comment(task: str, session: str) -> str:
    """Return the text while a proposal of the task waits."""
    return f"{code(task)} waits for a decision in session {code(session)}; the newest comment with a proposal shows it."


def ended_comment(task: str, session: str) -> str:
    """Return the text that takes the place of the progress when the task is over."""
    return f"{code(task)} is over; session {code(session)} worked on it."


def proposal_comment(item: InboxItem, state: SessionState, local_reason: str) -> ProposalComment:
    """Return the comment about a proposal: the whole of it with its reference, or why it is decided elsewhere.

    The same proposal gives the same text each time, whenever it is asked for.
    """
    # Who has the session open, and for how long it has waited, would make another text of it each time.
    item = replace(item, holder="", decided=None)
    (row,) = view_inbox([item], "")
    head = f"**{plain(row.kind)}** of {code(item.task)} waits: {plain(row.effect)}"
    elsewhere = f"Decide it on the worker's machine: {code(f'agent inbox show {item.id}')}"
    if local_reason or item.reference is None:
        why = local_reason or "it is too long to be shown in full"
        return ProposalComment(f"{head}\n\nIt cannot be decided here: {plain(why)}. {elsewhere}.", decidable=False)
    whole = proposal_text(item, state, "")
    shown = fenced(whole, limit_chars=MAX_COMMENT_CHARS)
    reference = str(item.reference)
    text = (
        f"{head}\n\n{shown}\n\nTo decide, write one of these as a new comment with nothing else in it:\n\n"
        f"- `/approve {reference}`\n- `/reject {reference} reason for the model`"
    )
    if len(text) > MAX_COMMENT_CHARS or whole.strip("\n") not in shown:
        why = "it is too long for a comment"
        return ProposalComment(f"{head}\n\nIt cannot be decided here: {why}. {elsewhere}.", decidable=False)
    return ProposalComment(text, decidable=True)


def result_comment(result: TaskResult, tag: str, address: str, troubles: tuple[str, ...]) -> str:
    """Return the report on a task that is over. `address` is that of its pull request; both may be empty."""
    done = result.status is TaskStatus.DONE
    reason = plain(result.reason)
    lines = ["✓ COMPLETED" if done else f"✗ FAILED: {reason}" if reason else "✗ FAILED", ""]
    facts = (("Branch", result.branch), ("Commit", result.commit), ("Tag", tag))
    lines += [f"{name}: {value}" for name, value in facts if value]
    lines += [f"Pull request: {address}"] if address else []
    if result.checks:
        lines += ["", "Verification results:", *map(_check, result.checks[:MAX_CHECKS])]
    if done and not result.checks:
        lines += ["", "Verification results:", "- no checks"]
    if more := len(result.checks) - MAX_CHECKS:
        lines += [f"- … and {more} more"] if more > 0 else []
    lines += [*([""] if troubles else []), *(f"Not reported: {plain(each)}" for each in troubles)]
    if result.session:
        lines += ["", f"Session {code(result.session)}."]
    return "\n".join(lines)


def answer_comment(comment: int, outcome: str, *, accepted: bool) -> str:
    """Return the answer to a comment that was meant to decide."""
    return f"{'✓' if accepted else '✗'} {plain(outcome)} (comment {comment})"


def _check(check: CheckOutcome) -> str:
    if check.exit_code is None:
        outcome = "did not end"
    else:
        outcome = "passed" if check.exit_code == 0 else f"failed with exit code {check.exit_code}"
    return f"- {code(check.command)}: {outcome} in {check.seconds:.1f} s"


def pull_request(state: SessionState, accounts: Sequence[TaskReport]) -> str:
    """Return the document; every foreign text in it renders literally."""
    lines = [line for account in accounts for line in (*_task(account), "")]
    if isinstance(state.main, Chat):
        lines = [*_chat(state.main), ""]
    return "\n".join([*(lines or ["No task was started in this session.", ""]), *_proof(state, accounts)]) + "\n"


def _chat(chat: Chat) -> Iterator[str]:
    """Yield the messages, calls and replies of a chat in order."""
    yield "# Chat"
    steps = steps_of(chat.history)
    calls = {step.seq: step.first for step in steps}
    results = {step.result.seq: step.result.event for step in steps if step.result is not None}
    for recorded in chat.history:
        event = recorded.event
        match event:
            case UserSaid():
                yield from ("", "## You", "", fenced(event.text, limit_chars=MAX_CHAT_CHARS))
                yield from (f"- with {code(chunk.place)}" for chunk in event.files)
                yield from (f"- with the skill {code(skill.name)}" for skill in event.skills)
            case CodeRetrieved():
                yield from (f"- found {code(chunk.place)}" for chunk in event.chunks)
            case ChatReplied():
                cut = f" ({event.why_cut})" if event.cut else ""
                yield from ("", f"## Reply{cut}", "", fenced(event.text, "markdown", limit_chars=MAX_CHAT_CHARS))
            case _ if call := calls.get(recorded.seq):
                yield from ("", f"Call of {code(call.tool)}:", "", fenced(call.text))
            case _ if result := results.get(recorded.seq):
                yield from ("", f"Result ({result.result}, {result.seconds:.1f} s):", "", fenced(result.observation))
            case _:
                pass


def _task(account: TaskReport) -> Iterator[str]:
    run = account.run
    yield f"# {plain(f'{run.task}: {run.definition.description}')}"
    yield ""
    if run.definition.goal:
        yield f"{plain(run.definition.goal, 1_000)}"
        yield ""
    outcome = run.status or "not finished"
    merged = account.merged
    reason = f"merged into {merged.into} ({merged.how})" if merged is not None else run.reason
    yield f"**{outcome}**{f': {plain(reason)}' if reason else ''}"
    yield from _section("What was done", _changes(account))
    yield from _section("Files", _files(account))
    yield from _section("Checks", [line for each in account.checks for line in _result_lines(account, each)])
    yield from _section("Decisions", _decisions(account))


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"## {title}", "", *lines)


def _changes(account: TaskReport) -> list[str]:
    told = [
        f"- {plain(change.why) or 'a change'} ({', '.join(code(path) for path in change.paths)}; step {change.step})"
        for change in account.changes[:MAX_CHANGES]
    ]
    return [*told, *_rest(len(account.changes), MAX_CHANGES)]


def _files(account: TaskReport) -> list[str]:
    if not account.files:
        return [] if account.files is not None else ["Git does not have the files of this session here."]
    rows = [f"| {cell(each.path)} | {each.text} |" for each in account.files[:MAX_FILES]]
    more = [f"| … and {len(account.files) - MAX_FILES} more | |"] if len(account.files) > MAX_FILES else []
    return ["| file | lines |", "| --- | --- |", *rows, *more]


def _result_lines(account: TaskReport, result: CheckResult) -> Iterator[str]:
    before = {each.command: each.passed for each in account.run.baseline or ()}.get(result.command)
    was = "" if before is None else ", passed before" if before else ", failed before"
    yield f"- {code(result.command)}: {'passed' if result.passed else '**failed**'}{was}"
    yield from (f"  - {code(each)}" for each in result.failed_tests[:5])


def _decisions(account: TaskReport) -> list[str]:
    by_users: list[GateDecision | UndoneChange] = sorted((*account.asked, *account.undone), key=lambda each: each.seq)
    told = [_decision(each) for each in by_users[:MAX_DECISIONS]]
    ruled = len(account.decisions) - len(account.asked)
    by_rules = [f"- {counted_text(ruled, 'gate')} decided by rules"] if ruled else []
    return [*told, *_rest(len(by_users), MAX_DECISIONS), *by_rules]


def _decision(made: GateDecision | UndoneChange) -> str:
    if isinstance(made, UndoneChange):
        return f"- undo: the diff of step {made.step} ({', '.join(code(path) for path in made.paths)})"
    return f"- {made.verdict}: {code(made.what)}{f' - {plain(made.reason)}' if made.reason else ''}"


def _rest(count: int, shown: int) -> list[str]:
    return [f"- … and {count - shown} more"] if count > shown else []


def _proof(state: SessionState, accounts: Sequence[TaskReport]) -> Iterator[str]:
    work = state.conversations
    steps, tokens = sum(each.step for each in work), sum(each.tokens for each in work)
    dollars = sum(each.dollars for each in work)
    cost = f", {dollars_text(dollars)}" if dollars else ""
    model = f" by {code(state.model.model)}" if state.model is not None and state.model.model else ""
    yield from ("---", "", f"{counted_text(steps, 'step')}, {counted_text(tokens, 'token')}{cost}{model}.", "")
    yield f"- session {code(state.session)}; {code(f'agent sessions verify {state.session}')} proves its journal"
    yield f"- the journal's head is {code(state.hash)}"
    if state.parent is not None:
        yield f"- forked from {code(state.parent)} after event {state.parent_seq}"
    for each in accounts:
        if each.run.commit is not None:
            verify = code(f"agent verify {each.run.commit[:10]}")
            yield f"- commit {code(each.run.commit)} on {code(each.run.workspace.branch)}; {verify} proves it"
