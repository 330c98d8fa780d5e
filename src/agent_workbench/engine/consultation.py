"""Consultation: material, question and answer, recorded; the review before a commit; notes in answers."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.background import uninterrupted
from agent_workbench.core.checks.results import named_places
from agent_workbench.core.consult_requests import (
    MESSAGE_CHARS,
    PROTOCOLS,
    TRAINER_WRITER,
    ConsultAnswer,
    ConsultantFacts,
    ConsultRequest,
    LogEntry,
    check_root,
    checked_request,
    consultant_named,
    history_block,
    judged_paths,
    knowledge_words,
    log_json,
    task_lines,
)
from agent_workbench.core.errors import (
    ContextOverflow,
    JournalError,
    ModelError,
    SkillError,
    StorageError,
    UsageError,
    WorkbenchError,
    error_text,
)
from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, ConsultStatus, Event, OfferedNote, Recorded
from agent_workbench.core.events.codec import change_texts
from agent_workbench.core.events.log_lines import log_line, phase_and_status
from agent_workbench.core.ids import SessionId
from agent_workbench.core.knowledge import compose_note
from agent_workbench.core.live import Consulting
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_chat_markers
from agent_workbench.engine.consult_attempts import (
    Answering,
    TakenAnswer,
    ask_endpoints,
    chain_of,
    model_label,
    stopped_attempt,
)
from agent_workbench.engine.consult_context import (
    VERSION,
    ConsultContext,
    JudgedFile,
    consult_context,
    files_block,
    read_judged,
)
from agent_workbench.engine.notes import find_knowledge, knowledge_text
from agent_workbench.engine.runtime.session_context import SessionContext

MOST_NOTES = 3
MOST_CONTENT_CHARS = 60_000
LEAST_CONTENT_CHARS = 2_000
REVIEW_LOG = (
    "Review this session log. Identify what is novel or worth preserving as organizational knowledge. "
    "Provide structured insights."
)

MOST_FILES = 6

REVIEW = "review"

MAX_NOTES = 20
MAX_NOTE_CHARS = 8_000
MAX_NAME_CHARS, MAX_TITLE_CHARS = 60, 200
_LEARNING = re.compile(r"^\s*[*_]*learning[*_]*\s*:", re.IGNORECASE | re.MULTILINE)
_LESSON = re.compile(r"^#{1,4}\s+lesson\b", re.IGNORECASE | re.MULTILINE)
_TITLE = re.compile(r"^(#{1,4})\s+(.+?)\s*$")
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*")
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")


class Material(Struct, frozen=True):
    """Sources of one question, before they are bounded: the files as they are, and the diff."""

    request: ConsultRequest
    task: str
    phase: str
    discipline: str
    files: tuple[JudgedFile, ...] = ()
    history: str = ""
    knowledge: str = ""


async def consult(context: ConsultContext, request: ConsultRequest) -> ConsultAnswer:
    """Ask a consultant and return its answer.

    Raises `UsageError` for a request that does not fit or a file that is not shown, `ConfigError` for a missing
    discipline, `ModelError` if no endpoint answers. Cancelling it stops the answer and records what came.
    """
    facts = consultant_named(request.skill)
    checked_request(request)
    root = context.state().repo
    check_root(request, root)
    chain = chain_of(context.settings, request)
    if facts.about_session:
        return await _about_session(context, request, facts, chain)
    model = model_label(context.settings, chain[0])
    named = (request.field(name) for name in facts.outputs)
    present = frozenset(await context.files.list_files())
    paths = (*judged_paths(request), *(path for path in named if path in present))
    material = Material(
        request,
        task_lines(request, root, model, _plain),
        facts.phase,
        await _discipline(context, facts.discipline),
        await _files(context, request, paths, root),
        history_block(_entries(context, request.session), facts.phase),
        await _knowledge(context, request),
    )
    return await _ask(context, material, chain)


async def _files(
    context: ConsultContext, request: ConsultRequest, paths: Sequence[str], root: str
) -> tuple[JudgedFile, ...]:
    """Return the named files; for an error those that it names."""
    if request.skill == "debug":
        return await read_traced(context, request.field("error"), root)
    return await read_judged(context, paths, request.diff)


async def _knowledge(context: ConsultContext, request: ConsultRequest) -> str:
    """Return the block of notes for the words of the request, empty without any; missing notes never matter."""
    words = knowledge_words(request)
    if not words:
        return ""
    memory = context.settings.memory.dir
    block = knowledge_text(await find_knowledge(context.ports.knowledge, memory, words, limit=MOST_NOTES))
    return f"{_plain(block)}\n" if block else ""


async def _about_session(
    context: ConsultContext, request: ConsultRequest, facts: ConsultantFacts, chain: Sequence[str]
) -> ConsultAnswer:
    """Ask about the log of a session: the retrospective once, the trainer twice."""
    entries = _entries(context, request.session)
    if not entries:
        raise UsageError(
            f"nothing is logged under {request.session!r}", advice="name a session, or the label of consultations"
        )
    log = _plain(log_json(entries))
    discipline = await _discipline(context, facts.discipline)
    if facts.name == "retrospective":
        task = f"SESSION_ID: {request.session}\n\nSESSION_LOG:\n{log}\n\n{REVIEW_LOG}"
        return await _ask(context, Material(request, task, facts.phase, discipline), chain)
    brain = f"session_id: {request.session}\nbrain_dir: {context.settings.memory.dir}/knowledge"
    reader = await _ask(
        context, Material(request, f"role: reader\n{brain}\nhistory:\n{log}", "reader", discipline), chain
    )
    written = f"role: writer\n{brain}\nreader_analysis:\n{_plain(reader.text)}"
    writer = await _ask(
        context, Material(request, written, "writer", await _discipline(context, TRAINER_WRITER)), chain
    )
    return replace(
        writer,
        reader_analysis=reader.text,
        duration_ms=reader.duration_ms + writer.duration_ms,
        attempts=(*reader.attempts, *writer.attempts),
        remarks=(*reader.remarks, *writer.remarks),
    )


async def _ask(context: ConsultContext, material: Material, chain: Sequence[str]) -> ConsultAnswer:
    """Ask with as much of the files as fits into the context of the endpoint."""
    room = MOST_CONTENT_CHARS
    while True:
        try:
            return await _ask_once(context, material, tuple(chain), room)
        except ContextOverflow:
            room //= 2
            if not material.files or room < LEAST_CONTENT_CHARS:
                raise


async def _ask_once(context: ConsultContext, material: Material, chain: tuple[str, ...], room: int) -> ConsultAnswer:
    request = material.request
    shown = bool(material.files or request.diff)
    asked = ConsultantAsked(
        number=len(context.state().consultations) + 1,
        skill=request.skill,
        phase=material.phase,
        task=material.task,
        protocols=await _discipline(context, PROTOCOLS),
        discipline=material.discipline,
        knowledge=material.knowledge,
        history=material.history,
        contents=files_block(material.files, request.diff, room) if shown else "",
        paths=tuple(file.path for file in material.files),
        label=request.session,
        model=request.model,
        chain=chain,
        verifier=next(iter(context.settings.roles.verifier), ""),
        about=request.about,
        wording=VERSION,
        answer_tokens=context.settings.model.answer_tokens,
    )
    # The model is sent what the journal keeps: without the values of secret variables.
    asked = _redacted(asked, context)
    remarks = await _record(context, asked)
    answering, started = Answering(), context.ports.clock.monotonic_seconds()

    def ended(status: ConsultStatus, text: str, reason: str = "", model: str = "", cut: int = 0) -> ConsultantAnswered:
        seconds = context.ports.clock.monotonic_seconds() - started
        attempts = tuple(answering.attempts)
        return ConsultantAnswered(
            asked.number, status, text, model, max(0, round(seconds * 1000)), attempts, reason, cut
        )

    try:
        taken = await ask_endpoints(context, asked, answering)
    except asyncio.CancelledError:
        stopped_attempt(context, answering)
        await uninterrupted(_record(context, ended(ConsultStatus.STOPPED, answering.shown.text, "stopped by the user")))
        raise
    except ModelError as error:
        await _record(context, ended(ConsultStatus.ERROR, "", str(error)))
        raise
    answered = ended(ConsultStatus.OK, taken.text, "", taken.model, taken.cut_chars)
    remarks += await uninterrupted(_record(context, answered))
    return _answer(answered, taken, remarks, context)


def _answer(
    answered: ConsultantAnswered, taken: TakenAnswer, remarks: tuple[str, ...], context: ConsultContext
) -> ConsultAnswer:
    return ConsultAnswer(
        context.ports.redacted(answered.text),
        answered.model,
        answered.duration_ms,
        answered.attempts,
        number=answered.number,
        remarks=(*taken.remarks, *remarks),
    )


def _redacted(asked: ConsultantAsked, context: ConsultContext) -> ConsultantAsked:
    changed = change_texts(asked, context.ports.redacted)
    return changed if isinstance(changed, ConsultantAsked) else asked


async def _record(context: ConsultContext, event: Event) -> tuple[str, ...]:
    """Record an event; a journal that cannot be written does not keep the answer from its user."""
    try:
        await context.record(event)
    except (StorageError, JournalError) as error:
        return (f"this consultation is not recorded: {error}",)
    return ()


async def _discipline(context: ConsultContext, name: str) -> str:
    """Return the text of a discipline; raise `SkillError` that names what is missing."""
    text = (await context.ports.skills.body(name)).strip("\n")
    if not text.strip():
        raise SkillError(f"the skill {name} is empty", advice="a consultant needs the text of its discipline")
    return text


def _entries(context: ConsultContext, label: str) -> tuple[LogEntry, ...]:
    """Return the log under a label: of earlier sessions, then of this one; without a label there is none."""
    state = context.state()
    own = (each for each in state.consultations if label in {each.asked.label, state.session})
    return (*context.past, *(each.entry for each in own)) if label else ()


def _plain(text: str) -> str:
    """Return foreign text without the markers of chat templates and without half characters."""
    return without_chat_markers(text.encode("utf-8", "replace").decode())


async def read_traced(context: ConsultContext, error: str, root: str) -> tuple[JudgedFile, ...]:
    """Return the files that an error names, the last named first; those that are not shown to a model are left out."""
    present = await context.files.list_files()
    named: dict[str, list[int]] = {}
    for place in reversed(list(named_places(error))):
        path = _own(place.path, present, root)
        if path and (path in named or len(named) < MOST_FILES):
            named.setdefault(path, []).append(place.line)
    found: list[JudgedFile] = []
    for path, lines in named.items():
        try:
            (file,) = await read_judged(context, (path,))
        except UsageError:
            continue
        found.append(replace(file, changed=tuple(lines)))
    return tuple(found)


def _own(path: str, present: tuple[str, ...], root: str) -> str:
    """Return the path of a file of the repository, empty for any other; the end of a path is enough if it is unique."""
    plain = path.removeprefix(f"{root.rstrip('/')}/").removeprefix("./")
    if plain in present:
        return plain
    ends = [each for each in present if plain.endswith(f"/{each}") or each.endswith(f"/{plain}")]
    return ends[0] if len(ends) == 1 else ""


async def review_change(session: SessionContext) -> None:
    """Ask for a review of everything that the task changed; whatever comes of it is recorded."""
    run = session.run
    session.publisher.show_activity("reviewing the change")
    session.publisher.show_consulting(Consulting(REVIEW))
    try:
        changes = [each for each in await (await session.workspace()).changes(run.tree) if _is_shown(each)]
        request = ConsultRequest(
            REVIEW,
            (("context", purpose_of(run.definition)),),
            tuple(each.path for each in changes if each.after is not None) or tuple(each.path for each in changes),
            session=session.state.session,
            diff=render_changes(changes),
            about=run.tree,
        )
        await consult(await consult_context(session, REVIEW), request)
    except WorkbenchError as error:
        # Without a record of the question the commit would never be proposed.
        if session.run.reviewed != run.tree:
            await _record_failure(session, run.tree, error_text(error))
        elif not isinstance(error, ModelError):
            session.publisher.notify(error_text(error))
    finally:
        session.publisher.show_consulting(None)


def _is_shown(change: FileChange) -> bool:
    """Return True for the change of a text that a model may see."""
    sides = (each.data for each in (change.before, change.after) if each is not None)
    return not holds_secrets(change.path) and not any(b"\0" in each for each in sides)


async def _record_failure(session: SessionContext, tree: str, reason: str) -> None:
    number = len(session.state.consultations) + 1
    await session.record(ConsultantAsked(number, REVIEW, REVIEW, "", "", "", about=tree))
    await session.record(ConsultantAnswered(number, ConsultStatus.ERROR, "", reason=reason))


def purpose_of(task: Task) -> str:
    """Return what a change is for, as the context of its review."""
    return "; ".join(filter(None, (" ".join(task.description.split()), " ".join(task.goal.split()))))


def proposed_notes(skill: str, text: str) -> tuple[OfferedNote, ...]:
    """Return the notes in an answer, none for other consultants than those two."""
    wanted = {"retrospective": (3, _LEARNING), "trainer": (1, _LESSON)}.get(skill)
    if wanted is None:
        return ()
    level, needed = wanted
    taken: set[str] = set()
    drafts: list[OfferedNote] = []
    for title, body in _sections(text, level):
        if not needed.search(body) or len(drafts) == MAX_NOTES:
            continue
        name = _name(title, taken)
        taken.add(name)
        drafts.append(OfferedNote(name, compose_note(title, sanitize(f"# {title}\n\n{body}")[:MAX_NOTE_CHARS]), skill))
    return tuple(drafts)


def _sections(text: str, level: int) -> Iterator[tuple[str, str]]:
    """Yield title and body of each section whose heading is of this level, or a higher one."""
    title, body = "", list[str]()
    for line in text.split("\n"):
        heading = _TITLE.match(line)
        if heading is not None and len(heading[1]) <= level:
            if title:
                yield title, _body(body)
            title, body = sanitize_line(heading[2].strip("[]*_ "), MAX_TITLE_CHARS), []
        elif title:
            body.append(line)
    if title:
        yield title, _body(body)


def _body(lines: list[str]) -> str:
    """Return the lines up to a rule, or to the last line that counts the notes."""
    kept: list[str] = []
    for line in lines:
        if _RULE.fullmatch(line) or re.match(r"\s*\d+ (?:learnings? worth|entries ready)", line, re.IGNORECASE):
            break
        kept.append(line)
    return "\n".join(kept).strip("\n")


def _name(title: str, taken: set[str]) -> str:
    plain = _NOT_A_NAME.sub("-", title.lower())[:MAX_NAME_CHARS].strip("-") or "note"
    number = 2
    name = plain
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name


def task_entries(events: Iterable[Recorded], session: SessionId, root: str) -> Iterator[LogEntry]:
    """Yield an entry for each event that a lesson may come from; consultations have entries of their own."""
    for recorded in events:
        told = phase_and_status(recorded.event)
        if told is not None:
            phase, status = told
            message = log_line(recorded.event)[:MESSAGE_CHARS]
            yield LogEntry(session, recorded.time, "task", phase, root, "", status, "", 0, message)
