"""Markdown for a pull request: what was done and why, the checks, and the proofs."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.events import ChatReplied, CodeRetrieved, UserSaid
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import steps_of
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.markdown import cell, code, fenced, plain
from agent_workbench.views.reports.task_report import GateDecision, TaskReport, UndoneChange

MAX_CHANGES = 20
MAX_CHAT_CHARS = 8_000
MAX_FILES = 50
MAX_DECISIONS = 30


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
    yield from _section("Checks", [line for each in account.checks for line in _check(account, each)])
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


def _check(account: TaskReport, result: CheckResult) -> Iterator[str]:
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
