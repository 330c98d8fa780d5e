"""Comments of the agent on the forge's issue of a task. All foreign text in them renders literally."""

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.queue.result import CheckOutcome, TaskResult
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.markdown import code, fenced, plain
from agent_workbench.views.inbox import proposal_text, view_inbox

MAX_COMMENT_CHARS = 60_000
MAX_CHECKS = 100


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
