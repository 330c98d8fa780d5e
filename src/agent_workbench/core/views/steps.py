"""The steps pane: the transcript of all runs, made event by event so that a long one costs no more than a short one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent_workbench.core.events import (
    ActionFinished,
    ModelAnswered,
    PromptBuilt,
    Recorded,
    TaskCommitted,
    TaskMerged,
    TestsFinished,
)
from agent_workbench.core.inert import inert, inert_line
from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.model import Purpose
from agent_workbench.core.state import SessionState
from agent_workbench.core.views.answers import WRITE_DIFF, take_apart
from agent_workbench.core.views.step_entries import entry_of
from agent_workbench.core.views.tones import Block, Entry, Tone


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is settled: `entries` of all events up to `last`, of which the state had `count`.

    `told`: what the running action came to was shown already; `purpose` is the last prompt's.
    """

    entries: tuple[Entry, ...] = ()
    count: int = 0
    last: Recorded | None = None
    told: bool = False
    purpose: Purpose = Purpose.EXECUTOR
    step: int = 0


@dataclass(frozen=True, slots=True)
class StepsView:
    """The transcript, and what is not settled yet at its end."""

    title: str
    transcript: Transcript
    unsettled: tuple[Entry, ...]
    empty: str


def view_steps(update: SessionUpdate, before: Transcript) -> StepsView:
    """Return what the steps pane shows; `before` is the transcript shown last, which is gone on from if it can be."""
    transcript = extend(before, update.state)
    run = update.state.run
    step = f" · {run.task} step {run.step}" if run is not None and run.step else ""
    return StepsView(
        title=f"Steps{step}",
        transcript=transcript,
        unsettled=tuple(_unsettled(update.live, transcript.step)),
        empty="what the model thinks and does stands here, step by step, once a task runs",
    )


def extend(before: Transcript, state: SessionState) -> Transcript:
    """Return the transcript of `state`: `before` with what is new, or one made anew when it does not go on from it."""
    events = _events(state)
    goes_on = before.count <= len(events) and (before.count == 0 or events[before.count - 1] is before.last)
    start = before if goes_on else Transcript()
    if start.count == len(events):
        return start
    entries = list(start.entries)
    after = start
    for recorded in events[start.count :]:
        entry = entry_of(recorded, after)
        entries += () if entry is None else (entry,)
        after = _note(after, recorded)
    return replace(after, entries=tuple(entries), count=len(events), last=events[-1])


def _events(state: SessionState) -> tuple[Recorded, ...]:
    here = state.run.history if state.run is not None else ()
    past = tuple(recorded for run in state.past for recorded in run.history)
    return (*past, *here) if past else here


def _note(transcript: Transcript, recorded: Recorded) -> Transcript:
    event = recorded.event
    match event:
        case PromptBuilt():
            return replace(transcript, purpose=event.purpose)
        case TestsFinished() | TaskCommitted() | TaskMerged():
            return replace(transcript, told=True)
        case ModelAnswered():
            return replace(transcript, step=event.step)
        case ActionFinished():
            return replace(transcript, told=False)
        case _:
            return transcript


def _unsettled(live: Live, step: int) -> Iterator[Entry]:
    if live.streaming is not None:
        yield Entry("streaming", tuple(_stream(live.streaming, step)))
    if live.running is not None:
        tail = inert("\n".join(live.running.tail.rstrip("\n").split("\n")[-12:]), limit_chars=20_000)
        head = Block(f"{inert_line(live.running.line)}  {live.running.seconds:.0f} s", Tone.ACCENT, "Running")
        body = (Block(tail, Tone.DIM, fold_lines=4, fold_end=True, clips=True),) if tail.strip() else ()
        yield Entry("running", (head, *body))


def _stream(streaming: Streaming, step: int) -> Iterator[Block]:
    parts = take_apart(streaming.text)
    if not streaming.text:
        yield Block(_reading(streaming), Tone.DIM, "Prompt", space_before=True)
        return
    if parts.reflects:
        yield Block(inert(parts.thought) + "▌", Tone.WARN, "Reflexion", space_before=True)
        return
    yield Block(f"step {step + 1}", Tone.TITLE, rule=True, space_before=True)
    yield Block(inert(parts.thought) + ("" if parts.action else "▌"), label="Thought")
    if parts.action:
        yield Block(inert_line(parts.action), Tone.ACCENT, "Action")
        body = "the diff grows in its pane …" if parts.action == WRITE_DIFF else inert(parts.body)
        yield Block(body + "▌", Tone.DIM)


def _reading(streaming: Streaming) -> str:
    if not streaming.prompt_total:
        return "waiting for the first word …"
    share = min(1.0, streaming.prompt_processed / streaming.prompt_total)
    bar = "━" * round(20 * share) + "╌" * (20 - round(20 * share))
    return f"{bar}  {streaming.prompt_processed:,} of {streaming.prompt_total:,} tokens read"
