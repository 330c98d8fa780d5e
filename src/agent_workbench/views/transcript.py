"""The transcript of all runs, folded event by event, so that long sessions stay cheap."""

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace
from msgspec.structs import replace as replaced

from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    ChatReplied,
    ChatStarted,
    ContextCompacted,
    EndpointPassed,
    Event,
    ModelAnswered,
    ModelObserved,
    ModelSwitched,
    PatchApplied,
    PromptBuilt,
    Recorded,
    SessionResumed,
    StepUndone,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskStarted,
    TestsFinished,
    UserSaid,
)
from agent_workbench.core.live import SessionUpdate, Streaming
from agent_workbench.core.model import ModelFacts, Purpose
from agent_workbench.core.state.growing_tuple import FoldSnapshots, GrowingTuple
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_colours
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.event_entries import EntryContext, check_entries, event_entry
from agent_workbench.views.transcript_blocks import (
    ASIDE,
    EDITS,
    split_answer,
    streamed_chat_blocks,
    streamed_plan_blocks,
    thought_line,
)

THOUGHT_TAIL_CHARS = 2_000
LEFT_CHARS = 80
NO_STEPS = "the steps of a task appear here once it runs"


class Transcript(EntryContext, frozen=True):
    """Fold of all events so far: the `entries`, and the context of the next one.

    `unread` are the user's messages that no prompt holds yet. `usual_model` is that of the usual endpoint. `baseline`
    are the running task's checks before any change, `root` is the folder in which they run. `results` are those of a
    chat since the newest message, which go below the reply.
    """

    entries: GrowingTuple[Entry] = field(default_factory=GrowingTuple)
    step: int = 0
    unread: tuple[Entry, ...] = ()
    usual_model: str = ""
    baseline: tuple[CheckResult, ...] | None = None
    root: str = ""
    results: tuple[Entry, ...] = ()


class StepsView(Struct, frozen=True):
    """The transcript, and unsettled entries at its end."""

    title: str
    transcript: Transcript
    unsettled: tuple[Entry, ...]
    empty: str


def transcript_snapshots() -> FoldSnapshots[Transcript]:
    """Return empty snapshots of the fold of a transcript."""
    return FoldSnapshots(Transcript(), extend_transcript)


def view_steps(update: SessionUpdate, trail: FoldSnapshots[Transcript] | None = None) -> StepsView:
    """Return the steps pane; `trail` holds the snapshots of earlier calls, which this one continues."""
    transcript = transcript_of(update.state, trail)
    run = update.state.run
    step = f" · {run.task} step {run.step}" if run is not None and run.step else ""
    return StepsView(
        title="Chat" if update.state.in_chat else f"Steps{step}",
        transcript=transcript,
        unsettled=tuple(_unsettled(update, transcript)),
        empty="" if transcript.entries else NO_STEPS,
    )


def transcript_of(state: SessionState, trail: FoldSnapshots[Transcript] | None = None) -> Transcript:
    """Return the transcript of `state`, continued from the nearest snapshot of `trail`."""
    return (transcript_snapshots() if trail is None else trail).at(state.events)


def extend_transcript(before: Transcript, recorded: Recorded) -> Transcript:
    """Return the transcript with one more event."""
    if isinstance(recorded.event, TestsFinished):
        checked = check_entries(recorded.seq, recorded.event, before.baseline, before.root)
        return _note(replace(before, entries=_plus(before.entries, checked)), recorded)
    entry, after = event_entry(recorded, before), before
    if after.unread and isinstance(recorded.event, PromptBuilt | TaskFinished | TaskStarted):
        read = isinstance(recorded.event, PromptBuilt)
        after = replace(after, entries=_plus(after.entries, _settled(after.unread, read=read)), unread=())
    if entry is not None:
        said = isinstance(recorded.event, UserSaid) and before.purpose is not Purpose.CHAT
        unread = (*after.unread, entry) if said else after.unread
        after = replace(after, unread=unread, entries=after.entries if said else after.entries.plus(entry))
        if before.purpose is Purpose.CHAT:
            after = _with_results(after, recorded.event, entry)
    return _note(after, recorded)


def _with_results(chat: Transcript, event: Event, newest: Entry) -> Transcript:
    """Return the transcript of a chat after its newest entry. The results of calls are put below the reply."""
    if isinstance(event, ActionFinished):
        return replace(chat, results=(*chat.results, newest))
    if isinstance(event, UserSaid):
        return replace(chat, results=())
    if not isinstance(event, ChatReplied) or not chat.results:
        return chat
    moved = {each.key for each in chat.results}
    first = next(at for at in range(len(chat.entries) - 1, -1, -1) if chat.entries[at].key == chat.results[0].key)
    stays = tuple(each for each in chat.entries[first:] if each.key not in moved)
    entries = _plus(GrowingTuple(chat.entries[:first]), (*stays, *chat.results))
    return replace(chat, entries=entries, results=())


def _plus(entries: GrowingTuple[Entry], more: tuple[Entry, ...]) -> GrowingTuple[Entry]:
    for entry in more:
        entries = entries.plus(entry)
    return entries


def _settled(words: tuple[Entry, ...], *, read: bool) -> tuple[Entry, ...]:
    """Return the user's messages at the point where the model reads them, or where it is certain that it never will."""
    return words if read else tuple(_with(word, "was not read: the task was over") for word in words)


def _with(entry: Entry, remark: str) -> Entry:
    return replaced(entry, blocks=(*entry.blocks, Block(remark, Tone.DIM)))


def _note(transcript: Transcript, recorded: Recorded) -> Transcript:
    event = recorded.event
    match event:
        case PromptBuilt():
            return replace(transcript, purpose=event.purpose)
        case ChatStarted():
            return replace(transcript, purpose=Purpose.CHAT)
        case TestsFinished(purpose=CheckPurpose.BASELINE):
            return replace(transcript, outcome_shown=True, baseline=event.results)
        case TaskStarted():
            return replace(transcript, baseline=None, root=event.workspace.path, checked=False)
        case PatchApplied() | StepUndone():
            return replace(transcript, checked=False)
        case TestsFinished():
            return replace(transcript, outcome_shown=True, checked=bool(event.results))
        case TaskCommitted() | TaskMerged() | ContextCompacted():
            return replace(transcript, outcome_shown=True)
        case ModelAnswered():
            step = transcript.step if transcript.purpose in ASIDE else event.step
            by, usual = transcript.name_of(event), transcript.usual_endpoint or event.endpoint
            return replace(transcript, step=step, other_endpoint=by, usual_endpoint=usual)
        case ActionProposed():
            return replace(transcript, tool=event.proposal.tool)
        case ActionFinished():
            return replace(transcript, outcome_shown=False)
        case SessionResumed() | ModelSwitched():
            return replace(transcript, usual_endpoint="", usual_model="")
        case EndpointPassed(purpose=Purpose.EXECUTOR) if not transcript.usual_endpoint:
            return replace(transcript, usual_endpoint=event.endpoint)
        case ModelObserved(purpose=Purpose.EXECUTOR):
            return _met(transcript, event.facts)
        case _:
            return transcript


def _met(transcript: Transcript, facts: ModelFacts) -> Transcript:
    """Return the transcript with the usual endpoint: the first one observed, also if it returns at another address."""
    if transcript.usual_endpoint and facts.model != transcript.usual_model:
        return transcript
    return replace(transcript, usual_endpoint=facts.endpoint, usual_model=facts.model)


def _unsettled(update: SessionUpdate, transcript: Transcript) -> Iterator[Entry]:
    live = update.live
    state = update.state
    if state.main is None and state.planning is None and transcript.entries:
        yield Entry("before", (Block(NO_STEPS, Tone.DIM, space_before=True),))
    if live.streaming is not None and live.streaming.text and state.open_planning is not None:
        yield Entry("streaming", tuple(streamed_plan_blocks(live.streaming)))
    elif live.streaming is not None and live.streaming.text and state.in_chat:
        yield Entry("streaming", tuple(streamed_chat_blocks(live.streaming)))
    elif live.streaming is not None:
        yield Entry("streaming", tuple(_stream(live.streaming, transcript)))
    if live.running is not None:
        head = Block(f"{sanitize_line(live.running.line)}  {live.running.seconds:.0f} s", Tone.ACCENT, "Running")
        yield Entry("running", (head, *_tail(live.running.tail)))
    if (left := live.left_running) is not None:
        ended = f"ended: {sanitize_line(left.ended, LEFT_CHARS)}" if left.ended else "runs"
        word = f"{sanitize_line(left.line, LEFT_CHARS)}  {ended}"
        head = Block(word, Tone.DIM if left.ended else Tone.ACCENT, "Left running")
        yield Entry("left running", (head, *_tail(left.tail)))
    yield from (_with(word, "will be read with the next step") for word in transcript.unread)


def _tail(output: str) -> tuple[Block, ...]:
    """Return the last lines of a command's output, none without output."""
    tail = sanitize(without_colours("\n".join(output.rstrip("\n").split("\n")[-12:])), limit_chars=20_000)
    return (Block(tail, Tone.DIM, fold_lines=4, fold_end=True, clips=True),) if tail.strip() else ()


def _stream(streaming: Streaming, transcript: Transcript) -> Iterator[Block]:
    if not streaming.text:
        yield _thinking(streaming.thought) if streaming.thought else _reading(streaming)
        return
    parts = split_answer(streaming.text)
    thought = (thought_line(streaming.thought),) if streaming.thought else ()
    if parts.reflects or transcript.purpose in ASIDE:
        yield from thought
        word, tone = ("Summary", Tone.PLAIN) if transcript.purpose is Purpose.SUMMARY else ("Reflexion", Tone.WARN)
        yield Block(sanitize(parts.thought.removeprefix(f"{word}:").lstrip()) + "▌", tone, word, space_before=True)
        return
    yield Block(f"step {transcript.step + 1}", Tone.TITLE, rule=True, space_before=True)
    yield from thought
    yield Block(sanitize(parts.thought) + ("" if parts.action else "▌"), label="Thought")
    if parts.action:
        yield Block(sanitize_line(parts.action), Tone.ACCENT, "Action")
        body = "the diff appears in its pane …" if parts.action in EDITS else sanitize(parts.body)
        yield Block(body + "▌", Tone.DIM)


def _thinking(thought: str) -> Block:
    """Return the end of the streamed reasoning, at most three rows, so that the screen does not jump."""
    end = sanitize(thought_end(thought).strip()) + "▌"
    so_far = f"⋯ {len(thought):,} characters so far"
    return Block(end, Tone.DIM, "Thinking", fold_lines=2, fold_end=True, more=so_far, space_before=True)


def thought_end(thought: str) -> str:
    """Return the end of the reasoning, cut where its line breaks stay stable as more arrives."""
    start = thought.rfind("\n", 0, max(0, len(thought) - THOUGHT_TAIL_CHARS)) + 1
    if len(thought) - start > 2 * THOUGHT_TAIL_CHARS:
        start = (len(thought) // THOUGHT_TAIL_CHARS - 1) * THOUGHT_TAIL_CHARS
    return thought[start:]


def _reading(streaming: Streaming) -> Block:
    return Block(_progress(streaming), Tone.DIM, "Prompt", space_before=True)


def _progress(streaming: Streaming) -> str:
    if not streaming.prompt_total:
        return "waiting for the first token …"
    share = min(1.0, streaming.prompt_processed / streaming.prompt_total)
    bar = "━" * round(20 * share) + "╌" * (20 - round(20 * share))
    return f"{bar}  {streaming.prompt_processed:,} of {streaming.prompt_total:,} tokens read"
