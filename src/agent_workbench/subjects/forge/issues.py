"""Issues of a forge: as queued tasks, bounded and frozen, and the decisions that comments write."""

import re
from enum import StrEnum
from hashlib import sha256

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.inbox import Reference, parse_reference
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.settings.worker import ForgeKind
from agent_workbench.core.task_result import read_source
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, sanitize_whole, without_chat_markers

_RETRY = re.compile(r"task-[0-9]{1,9}-retry-([0-9]{1,19})", re.ASCII)
MAX_TITLE_CHARS = 300
MAX_TEXT_CHARS = 20_000

_NUMBER = "([1-9][0-9]{0,8})"
_TASK_ID = re.compile(rf"task-{_NUMBER}(?:[._-].*)?", re.ASCII)
_PARENT = re.compile(rf"#?{_NUMBER}", re.ASCII)

MAX_REASON_CHARS = 2_000
MAX_COMMENT_CHARS = 4_000
_HEAD = re.compile(r"/(approve|reject|retry)(?![^\s])")


def text_sha(title: str, text: str) -> str:
    """Return the SHA-256 of an issue's title and text, by which the task is frozen."""
    return sha256(f"{title}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def issue_task_id(issue: int, retry: int = 0) -> str:
    """Return the id of an issue's task; `retry` is the comment that asked for another try."""
    return f"task-{issue}-retry-{retry}" if retry else f"task-{issue}"


def retry_of(name: str) -> int:
    """Return the comment that asked for this try of an issue's task, 0 for the first one."""
    match = _RETRY.fullmatch(name)
    return int(match[1]) if match else 0


def issue_definition(source: str, title: str, text: str) -> str:
    """Return the task's definition in YAML: title as description, text as goal; nothing of it can be another key.

    Raises `UsageError` for a text that is too long to be a task, or a title without a word.
    """
    if len(title) > MAX_TITLE_CHARS or len(text) > MAX_TEXT_CHARS:
        raise UsageError(
            f"the issue has more than {MAX_TITLE_CHARS} characters in its title or {MAX_TEXT_CHARS:,} in its text",
            advice="shorten it, then set the label again",
        )
    description = inert(sanitize_line(title, 2 * MAX_TITLE_CHARS))
    if not description:
        raise UsageError("the issue has no title", advice="give it one, then set the label again")
    goal = inert(text).strip("\n") if text.strip() else description
    return f"source: {source}\ndescription: {_block(description)}\ngoal: {_block(goal)}\n"


def inert(text: str) -> str:
    """Return foreign text without control and invisible characters, and without markers of chat templates."""
    return without_chat_markers(sanitize_whole(text.encode("utf-8", "replace").decode()))


def _block(text: str) -> str:
    """Return a literal block: whatever a line holds, it stays text."""
    lines = "\n".join(f"  {line}".rstrip(" ") for line in text.split("\n"))
    return f"|2-\n{lines}"


def issue_of(task: Task, repo: str, kind: ForgeKind = ForgeKind.GITEA) -> int | None:
    """Return the number of the task's issue in the repository `repo` of a forge, None if it has none there.

    A source counts first: a project's name in it stands for the repository. Then the number of `parent_issue` counts,
    and then that of an id such as `task-7` or `task-7-a`. A task that somebody's commit brought has no issue.
    """
    if task.origin is TaskOrigin.REPOSITORY:
        return None
    if task.source:
        source = read_source(task.source.strip())
        elsewhere = source is None or ("/" in source.repo and source.repo.lower() != repo.lower())
        elsewhere = elsewhere or (source is not None and (source.forge == "github") is not (kind is ForgeKind.GITHUB))
        return None if source is None or elsewhere else source.number
    match = _PARENT.fullmatch(task.parent_issue.strip()) if task.parent_issue else _TASK_ID.fullmatch(task.id)
    return int(match[1]) if match else None


def tag_name(task: str) -> str:
    """Return the name of the tag for a task that is done: `task-7-done`, also for an id without the prefix."""
    return f"{task}-done" if task.startswith("task-") else f"task-{task}-done"


class CommandVerb(StrEnum):
    """Verbs of a comment."""

    APPROVE = "approve"
    REJECT = "reject"
    RETRY = "retry"


class CommentCommand(Struct, frozen=True):
    """A comment that decides; `reference` is None for a retry."""

    verb: CommandVerb
    reference: Reference | None = None
    reason: str = ""


def read_command(text: str) -> CommentCommand | None:
    """Return the command that a whole comment is, None for an ordinary comment.

    The comment begins with the command, so a quote, a code block or a hidden text in front of it makes it an ordinary
    one. Nothing but the reason of a rejection follows. Raises `UsageError` for a command that is not written so.
    """
    said = text.replace("\r\n", "\n")
    head = _HEAD.match(said)
    if head is None:
        return None
    verb, words = CommandVerb(head[1]), said[head.end() :].strip().split(maxsplit=1)
    if len(said) > MAX_COMMENT_CHARS:
        raise UsageError(f"a comment that decides has at most {MAX_COMMENT_CHARS:,} characters")
    if verb is CommandVerb.RETRY:
        if words:
            raise UsageError("`/retry` stands alone in its comment")
        return CommentCommand(verb)
    if not words:
        raise UsageError(f"`/{verb}` lacks the reference of the proposal", advice=_example(verb))
    reference = parse_reference(words[0])
    reason = words[1].strip() if len(words) > 1 else ""
    if verb is CommandVerb.APPROVE and reason:
        raise UsageError("an approval has nothing behind its reference", advice=_example(verb))
    if any(_HEAD.match(line.strip()) for line in reason.split("\n")):
        raise UsageError("a comment makes one decision", advice="write a comment for each")
    if len(reason) > MAX_REASON_CHARS:
        raise UsageError(f"a reason has at most {MAX_REASON_CHARS:,} characters")
    return CommentCommand(verb, reference, without_chat_markers(sanitize(reason)))


def _example(verb: CommandVerb) -> str:
    return f"write `/{verb} SESSION/P-14@DIGEST{' and a reason' if verb is CommandVerb.REJECT else ''}`"
