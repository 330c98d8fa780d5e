"""Context of a consultation: its prompt, a pure function of `ConsultantAsked`, and the files to be judged."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from agent_workbench.core.consult_requests import LogEntry
from agent_workbench.core.errors import PatchError, UsageError
from agent_workbench.core.events import Event
from agent_workbench.core.events.beside_tasks import ConsultantAsked
from agent_workbench.core.live import Consulting, Streaming
from agent_workbench.core.model import Message, Role
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import OWN_BOUNDS, FileContent, Hunk, LineKind, Patch
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize, without_chat_markers
from agent_workbench.engine.runtime.budget import clip, dollars_left
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import Ports, TaskBounds

VERSION = 1
"""Version of the texts below; `ConsultantAsked.wording` records it."""
RULE = "\n---\n\n"
VERIFIER = """\
You check the answer of a consultant. Accept it if it follows the consultant's rules, answers what was asked, and \
states nothing that the question does not show. Answer with one line of JSON and nothing else: \
{"accept": true or false, "feedback": "what is wrong, in one sentence"}"""

TITLE, DIFF_TITLE = "## Files", "## Diff"
MAX_FILE_BYTES = 2_000_000
MAX_LINE_CHARS = 500
LEAST_FILE_CHARS = 400
AROUND_LINES = 12
"""Lines shown around each changed line of a file that has no room as a whole."""


def show_nothing(_: Streaming) -> None:
    """Ignore an answer that arrives."""


class ConsultContext(Struct, frozen=True):
    """Surroundings of a consultation.

    `state` returns the session's newest state, `record` adds an event to it. `files` are those of the workspace or the
    checkout, of which `may_read` admits some. `past` are the entries of earlier sessions with the label of the request.
    `show` is given the answer as it arrives. `dollars_left` bounds the price (None: only the daily cap does).
    """

    ports: Ports
    settings: Settings
    state: Callable[[], SessionState]
    record: Callable[[Event], Awaitable[object]]
    files: Sources
    may_read: Callable[[str], bool] = lambda _: True
    past: tuple[LogEntry, ...] = ()
    show: Callable[[Streaming], None] = show_nothing
    dollars_left: float | None = None


async def consult_context(session: SessionContext, skill: str) -> ConsultContext:
    """Return the context of a consultation within a session: its task's files and scope, if there is a task."""
    state = session.state
    run = state.run if state.unfinished else None
    bounds = TaskBounds(session.settings, run.definition, state) if run is not None else None
    return ConsultContext(
        session.ports,
        session.settings,
        lambda: session.state,
        session.record,
        await session.sources(),
        bounds.may_read if bounds is not None else lambda _: True,
        show=lambda streaming: session.publisher.show_consulting(Consulting(skill, streaming)),
        dollars_left=dollars_left(run) if run is not None else None,
    )


def consult_messages(asked: ConsultantAsked, feedback: Sequence[str] = ()) -> tuple[Message, ...]:
    """Return the messages of an attempt; `feedback` is what a verifier said of the earlier ones."""
    system = RULE.join(filter(None, (asked.protocols, asked.discipline)))
    blocks = filter(None, (asked.knowledge, asked.history, asked.contents))
    user = RULE.join((*blocks, asked.task))
    said = "".join(f"\n\nPrior attempt feedback: {each}" for each in feedback)
    return Message(Role.SYSTEM, system), Message(Role.USER, f"{user}{said}")


def verifier_messages(asked: ConsultantAsked, text: str) -> tuple[Message, ...]:
    """Return the question whether an answer is to be taken."""
    question = consult_messages(asked)[1].text
    told = f"## Rules\n\n{asked.discipline}\n\n## Question\n\n{question}\n\n## Answer\n\n{text}"
    return Message(Role.SYSTEM, VERIFIER), Message(Role.USER, told)


class JudgedFile(Struct, frozen=True):
    """A file as it is shown: its lines, and the numbers of those that a diff changes."""

    path: str
    lines: tuple[str, ...]
    changed: tuple[int, ...] = ()


async def read_judged(context: ConsultContext, paths: Sequence[str], diff: str = "") -> tuple[JudgedFile, ...]:
    """Return these files, as they are after `diff` if there is one.

    Raises `UsageError` that names a path outside the repository or the scope, one that holds secrets by its name, a
    missing, unreadable, binary or very large file.
    """
    patch = _patch(diff)
    for path in patch.paths if patch is not None else ():
        _check_shown(context, path, path)
    created = {file.path for file in patch.files} if patch is not None else set()
    present = frozenset(await context.files.list_files())
    wanted = [_checked(context, path, present | created) for path in dict.fromkeys(paths)]
    contents: dict[str, FileContent | None] = {}
    for path in (*wanted, *(patch.paths if patch is not None else ())):
        contents[path] = await _content(context, path) if path in present else None
    after, changed = _after(patch, contents, present)
    return tuple(JudgedFile(path, _lines(path, after.get(path)), changed.get(path, ())) for path in wanted)


def _checked(context: ConsultContext, path: str, known: frozenset[str] | set[str]) -> str:
    """Return the path as the repository names it; raise `UsageError` for one that is not shown."""
    plain = path.removeprefix("./")
    if PurePosixPath(plain).is_absolute() or ".." in plain.split("/") or "\0" in plain or not plain:
        raise UsageError(f"{quoted(path)} is outside of the repository", advice="name files by their path in it")
    _check_shown(context, plain, path)
    if plain not in known:
        below = any(each.startswith(f"{plain.rstrip('/')}/") for each in known)
        what = "is a folder" if below else "is not there, or git ignores it"
        raise UsageError(f"{quoted(path)} {what}", advice="name files that git tracks or would add")
    return plain


def _check_shown(context: ConsultContext, plain: str, path: str) -> None:
    if holds_secrets(plain):
        raise UsageError(f"{quoted(path)} holds secrets by its name", advice="it is never shown to a model")
    if not context.may_read(plain):
        raise UsageError(f"{quoted(path)} is outside of what this task may read")


async def _content(context: ConsultContext, path: str) -> FileContent:
    data = (await context.files.read_files((path,))).get(path)
    if data is None:
        raise UsageError(f"{quoted(path)} is no regular file that can be read", advice="links are not followed")
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{quoted(path)} has {len(data):,} bytes, at most {MAX_FILE_BYTES:,} can be judged")
    if b"\0" in data:
        raise UsageError(f"{quoted(path)} is binary ({len(data):,} bytes), nothing of it can be shown to a model")
    return FileContent(data)


def _patch(diff: str) -> Patch | None:
    try:
        return parse_patch(diff, OWN_BOUNDS) if diff else None
    except PatchError:
        return None  # its text is shown all the same


def _after(
    patch: Patch | None, contents: Mapping[str, FileContent | None], present: frozenset[str]
) -> tuple[Mapping[str, FileContent | None], Mapping[str, tuple[int, ...]]]:
    """Return the contents after the patch, and the lines that it adds to each file."""
    if patch is None:
        return contents, {}
    changed = {file.path: tuple(_added(file.hunks)) for file in patch.files}
    try:
        changes = apply_patch(patch, contents, present)
    except PatchError:
        return contents, changed  # the diff is applied already, or the files moved on
    return {**contents, **{change.path: change.after for change in changes}}, changed


def _added(hunks: Sequence[Hunk]) -> Iterator[int]:
    """Yield the numbers of the lines after the diff that it adds, or beside which it removes some."""
    for hunk in hunks:
        number = hunk.new_start
        for line in hunk.lines:
            if line.kind is not LineKind.CONTEXT:
                yield max(1, number)
            number += line.kind is not LineKind.REMOVED


def _lines(path: str, content: FileContent | None) -> tuple[str, ...]:
    if content is None:
        return ()
    text = without_chat_markers(sanitize(content.data.decode("utf-8", "replace"), line_chars=MAX_LINE_CHARS))
    return tuple(text.removesuffix("\n").split("\n"))


def files_block(files: Sequence[JudgedFile], diff: str, most_chars: int) -> str:
    """Return the files and the diff in at most about `most_chars` characters; what was cut is stated."""
    blocks = []
    if diff:
        room = most_chars // 2 if files else most_chars
        shown = clip(without_chat_markers(sanitize(diff)), max(room, LEAST_FILE_CHARS))
        blocks.append(f"{DIFF_TITLE}\n\n{_indented(shown)}\n")
        most_chars -= len(shown)
    if files:
        blocks.append("\n".join((f"{TITLE}\n", *_shares(files, most_chars))))
    return "\n".join(blocks)


def _shares(files: Sequence[JudgedFile], most_chars: int) -> Iterator[str]:
    """Yield the text of each file; small files leave their room to the later ones."""
    for position, file in enumerate(files):
        share = max(most_chars // (len(files) - position), LEAST_FILE_CHARS)
        text = _numbered(file, share)
        most_chars -= len(text)
        yield text


def _numbered(file: JudgedFile, room: int) -> str:
    count = len(file.lines)
    if not any(file.lines):
        return f"### {file.path} (empty, or removed)\n"
    rows = [f"{number:>5} | {line}" for number, line in enumerate(file.lines, 1)]
    kept = _kept(rows, file.changed, room)
    shown = sum(1 for row in kept if row is not None)
    cut = "" if shown == count else f", {count - shown:,} of {count:,} lines are left out"
    body = "\n".join("    … |" if row is None else row for row in kept)
    return f"### {file.path} ({count:,} lines{cut})\n\n{body}\n"


def _kept(rows: Sequence[str], changed: Sequence[int], room: int) -> list[str | None]:
    """Return the rows that fit, from the start or around the changed lines; None stands for a gap."""
    if sum(len(row) + 1 for row in rows) <= room:
        return list(rows)
    near = {at for line in changed for at in range(line - AROUND_LINES, line + AROUND_LINES + 1)}
    kept: list[str | None] = []
    for number, row in enumerate(rows, 1):
        if near and number not in near:
            if kept and kept[-1] is not None:
                kept.append(None)
            continue
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    return [*kept, None] if not kept or kept[-1] is not None else kept


def _indented(text: str) -> str:
    """Return the text as a block of code that no line of it can end."""
    return "\n".join(f"    {line}" for line in text.split("\n"))
