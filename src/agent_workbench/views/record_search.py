"""Search for words in everything that was said and done in a session."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    CodeRetrieved,
    ContextCompacted,
    Event,
    KnowledgeFound,
    ModelAnswered,
    ModelInterrupted,
    ProposalReplaced,
    Recorded,
    ReflexionNoted,
    ScratchpadChanged,
    SessionLeft,
    TaskCommitted,
    TaskFinished,
    TaskRolledBack,
    TaskStarted,
    TestsFinished,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.text.sanitizer import without_colours
from agent_workbench.views.transcript_blocks import EDITS, split_answer

MAX_MATCHES = 1_000
LINE_CHARS = 200
BEFORE_CHARS = 40
"""Characters of a long line before the match."""
SUBJECT_EVENTS = (TaskStarted, UserSaid, ScratchpadChanged, ContextCompacted, TaskCommitted, TaskFinished)
SUBJECT_CHARS = 50_000


class RecordMatch(Struct, frozen=True):
    """A matching line: its event, time, and kind of text; the match starts at `at`."""

    seq: int
    time: str
    kind: str
    line: str
    at: int
    length: int


class RecordMatches(Struct, frozen=True):
    """Result for the first `searched` events: `count` matching lines. `matches` are the first of them."""

    asked: str
    searched: int = 0
    count: int = 0
    matches: tuple[RecordMatch, ...] = ()


def search_events(events: Sequence[Recorded], asked: str) -> RecordMatches:
    """Return the matching lines of a session. Case matters only if `asked` has capitals."""
    return search_more(RecordMatches(asked), events, len(events))


def search_more(found: RecordMatches, events: Sequence[Recorded], most: int) -> RecordMatches:
    """Return the result after `most` more events, so that a long session is searched in slices."""
    end = min(len(events), found.searched + most)
    if not found.asked.strip():
        return RecordMatches(found.asked, len(events))
    pattern = _pattern(found.asked)
    matches, count = list(found.matches), found.count
    for recorded in events[found.searched : end]:
        for match in _matches(recorded, pattern):
            count += 1
            if len(matches) < MAX_MATCHES:
                matches.append(match)
    return RecordMatches(found.asked, end, count, tuple(matches))


def _pattern(asked: str) -> re.Pattern[str]:
    words = asked.strip()
    return re.compile(re.escape(words), re.IGNORECASE if words == words.lower() else 0)


def _matches(recorded: Recorded, pattern: re.Pattern[str]) -> Iterator[RecordMatch]:
    for kind, text in event_texts(recorded.event):
        end = 0
        while (hit := pattern.search(text, end)) is not None:
            first = text.rfind("\n", 0, hit.start()) + 1
            line_end = text.find("\n", hit.end())
            end = len(text) if line_end < 0 else line_end
            shown_from = max(first, hit.start() - BEFORE_CHARS) if end - first > LINE_CHARS else first
            line = text[shown_from : min(end, shown_from + LINE_CHARS)]
            yield RecordMatch(
                recorded.seq, recorded.time, kind, line, hit.start() - shown_from, hit.end() - hit.start()
            )


def subject_text(events: Iterable[Recorded]) -> str:
    """Return the words that say what a session was about: tasks, the user's messages, notes, summaries and commits."""
    subjects = (recorded.event for recorded in events if isinstance(recorded.event, SUBJECT_EVENTS))
    return "\n".join(text for event in subjects for _, text in event_texts(event))[:SUBJECT_CHARS]


def event_texts(event: Event) -> Iterable[tuple[str, str]]:
    """Return the texts of an event with their kinds; repetitions of earlier texts are left out."""
    match event:
        case ModelAnswered():
            return _answer(event.text, event.reasoning)
        case ModelInterrupted():
            return _answer(event.partial, event.reasoning)
        case ReflexionNoted():
            return ()  # a repetition of the answer
        case ActionProposed():
            return event.proposal.searchable
        case ProposalReplaced():
            return (("edit", event.proposal.diff or event.proposal.text), ("reason", event.reason))
        case ActionDecided() | AbortAsked():
            return (("reason", event.reason),)
        case UserSaid():
            return (("your message", event.text),)
        case ScratchpadChanged():
            return (("notes", event.text),)
        case ContextCompacted():
            return (("summary", event.summary),)
        case _:
            return _done(event)


def _done(event: Event) -> Iterable[tuple[str, str]]:
    match event:
        case ActionFinished():
            return (("result", without_colours(event.observation)), ("output", without_colours(event.output)))
        case TestsFinished():
            return tuple(("checks", f"$ {each.command}\n{without_colours(each.output)}") for each in event.results)
        case ActionRejected():
            return (("invalid answer", event.reason),)
        case TaskStarted():
            task = event.definition
            about = " ".join(filter(None, (task.service, task.intent)))
            texts = (f"{task.id}  {task.description}", task.goal, task.suggested_approach, about)
            return (("task", "\n".join(texts)),)
        case KnowledgeFound():
            return tuple(("knowledge", f"{note.path}\n{note.symbol}\n{note.text}") for note in event.notes)
        case CodeRetrieved():
            return (("search", event.query), *(("code", f"{chunk.place}\n{chunk.text}") for chunk in event.chunks))
        case TaskCommitted():
            return (("commit", event.message),)
        case TaskFinished() | TaskRolledBack():
            return (("end", f"{event.task}: {event.reason}"),)
        case TroubleMet():
            return (("trouble", f"{event.what}\n{event.advice}"),)
        case SessionLeft():
            return (("end", event.reason),)
        case _:
            return ()


def _answer(text: str, reasoning: str) -> Iterable[tuple[str, str]]:
    parts = split_answer(text)
    said = "reflexion" if parts.reflects else "thought"
    about = "diff" if parts.action in EDITS else "action"
    return ("thinking", reasoning), (said, parts.thought), (about, f"{parts.action}\n{parts.body}")
