"""Scratchpad of a task in prompts: its visible part, its length limit, and the closing note."""

from hashlib import sha256

from agent_workbench.core.errors import ModelError
from agent_workbench.core.events import Author, ScratchpadChanged
from agent_workbench.core.ids import TaskId
from agent_workbench.core.model import Purpose
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import Approval, Permission, Settings
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.engine.prompt.prompt_size import CHARS_PER_TOKEN
from agent_workbench.engine.runtime.session_context import SessionContext

MOST_CHARS_PER_TOKEN = 5
"""A high estimate: what may have as many tokens as the threshold is shown whole."""
WHAT_CHARS = 100
REASON_CHARS = 200
LEAST_SUMMARY_TOKENS, MOST_SUMMARY_TOKENS = 128, 2048


def notes_changed(settings: Settings, task: TaskId, text: str, by: Author) -> ScratchpadChanged:
    """Return the event that records a changed scratchpad and how much of it prompts may show."""
    limit = settings.memory.summarise_threshold * MOST_CHARS_PER_TOKEN
    return ScratchpadChanged(task, text, by, limit if 0 < limit < len(text) else 0)


def notes_sha(text: str) -> str:
    """Return SHA-256 of a scratchpad."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def summary_size(threshold: int) -> int:
    """Return the token limit of a scratchpad's summary."""
    return max(LEAST_SUMMARY_TOKENS, min(MOST_SUMMARY_TOKENS, threshold // 2))


async def too_long(session: SessionContext, purpose: Purpose) -> int:
    """Return the tokens of the task's scratchpad if it must be summarized now, else 0.

    After a summary, made or declined, it must first grow by half.
    """
    run = session.run
    text, threshold = session.state.scratchpad(run.task), session.settings.memory.summarise_threshold
    if (
        threshold <= 0
        or not _may_be_summarised(session.state)
        or len(text) <= threshold
        or 2 * len(text) <= 3 * run.notes_settled
    ):
        return 0
    try:
        (size,) = await session.ports.model.count_tokens([session.ports.redacted(text)], purpose)
    except ModelError:
        size = 0
    size = size or len(text) // CHARS_PER_TOKEN
    return size if size > threshold else 0


def _may_be_summarised(state: SessionState) -> bool:
    """Return True if a person or a rule can approve a summary; the work can go on without one."""
    config = state.config
    if config is None or config.approvals.summary is not Approval.ASK:
        return config is None or config.approvals.summary is Approval.AUTO
    return not config.headless or any(each.rule.kind is Permission.SUMMARY for each in state.rules)


async def write_closing_note(session: SessionContext) -> None:
    """Append the result of the task to the scratchpad, once, even if its end is recorded again."""
    run, memory = session.run, session.ports.memory
    note = closing_note(session.state, run)
    before = await memory.read_scratchpad(run.task, run.fork)
    if note not in before.splitlines():
        gap = "" if not before or before.endswith("\n") else "\n"
        after = await memory.write_scratchpad(run.task, before, f"{before}{gap}{note}\n", run.fork)
    else:
        after = before
    if session.ports.redacted(after) != session.state.scratchpad(run.task):
        await session.record(notes_changed(session.settings, run.task, after, Author.WORKBENCH))


def closing_note(state: SessionState, run: TaskRun) -> str:
    """Return one line about a finished task: description, branch and commit or why it failed, and session."""
    what = _short(run.definition.description, WHAT_CHARS)
    if run.status is TaskStatus.FAILED:
        return f"- failed: {what}: {_short(run.reason, REASON_CHARS)} (session {state.session})"
    # Without a commit there is no branch any more.
    came = f"branch {run.workspace.branch}, commit {run.commit[:10]}" if run.commit else "nothing was changed"
    return f"- done: {what} ({came}, session {state.session})"


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
