"""The receipt of a prompt: each of its parts with its tokens, what the server had of it, and what reading it took."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent_workbench.core.events import (
    ModelObserved,
    PromptBuilt,
)
from agent_workbench.core.inert import inert_line
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.reads import PromptReads, grown_from, reads_of
from agent_workbench.core.state import SessionState, TaskRun
from agent_workbench.core.views.receipt_pieces import Piece, counted_parts
from agent_workbench.core.views.receipt_prompts import Sent, has_steps, one_context, prompts_of

LABEL_CHARS = 300
TEMPLATE = "template"
ANSWER = "answer"
# What a compaction leaves as it is: first what the prompt begins with, then what stands in it anew.
_BEGINNING = ("rules", "task", "skill")
_KEPT = ("scratchpad", "pinned", "code", "user", "change", "failing")


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """A part of the prompt, or (`inside`) a piece of code in the part above it, with the tokens of both.

    `tokens` is the sum of `cached`, `new` and `again` where the server tells what it had. `prompt` is the number of the
    prompt in which it came first. `seconds` is what reading it took in this prompt. A piece has a `place`, by which it
    is pinned and dropped; dropping it frees `saves` tokens at the next compaction. `estimated`: nobody counted these.
    """

    label: str
    tokens: int
    cached: int = 0
    new: int = 0
    again: int = 0
    seconds: float = 0.0
    prompt: int = 0
    place: str = ""
    inside: bool = False
    pinned: bool = False
    dropped: bool = False
    saves: int = 0
    estimated: bool = False

    @property
    def read(self) -> str:
        """What the server did with it, in words: `cached`, `new`, `read again`, or how much of each."""
        kinds = ((self.cached, "cached"), (self.new, "new"), (self.again, "read again"))
        said = [(tokens, word) for tokens, word in kinds if tokens]
        return said[0][1] if len(said) == 1 else ", ".join(f"{tokens:,} {word}" for tokens, word in said)


@dataclass(frozen=True, slots=True)
class Compacting:
    """What a compaction now would come to: tokens it frees at most, those to be read anew, and the seconds for them."""

    frees: int
    reads: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ReceiptView:
    """The receipt of prompt `number` of `count`; `tokens` are the server's where it told, `context_tokens` 0: unknown.

    `answered` is False while no answer told what the prompt took; then there are no figures. `tells_cache` is False
    where the server does not say what it had of the prompt.
    """

    number: int
    count: int
    step: int
    purpose: Purpose
    endpoint: str
    model: str
    seed: int
    tokens: int
    context_tokens: int
    rows: tuple[ReceiptRow, ...]
    answered: bool = False
    tells_cache: bool = True
    cached: int = 0
    new: int = 0
    again: int = 0
    seconds: float = 0.0
    answer_tokens: int = 0
    dollars: float = 0.0
    compacting: Compacting | None = None
    grammar_sha: str = ""


def count_prompts(state: SessionState) -> int:
    """Return how many prompts the session has built."""
    return sum(isinstance(each.event, PromptBuilt) for run in _runs(state) for each in run.history)


def view_receipt(state: SessionState, number: int = 0) -> ReceiptView | None:
    """Return the receipt of the session's prompt `number`, from 1 (0: the newest); None where there is no such."""
    count = count_prompts(state)
    wanted = number or count
    before = 0
    met = dict(state.models)
    observed = (each.event for each in state.opening if isinstance(each.event, ModelObserved))
    met |= {event.purpose: event.facts for event in observed}
    for run in _runs(state):
        sent = tuple(prompts_of(run, before, met))
        if before < wanted <= before + len(sent):
            return _receipt(run, one_context(sent[: wanted - before]), count, newest=wanted == count)
        before += len(sent)
    return None


def _runs(state: SessionState) -> tuple[TaskRun, ...]:
    return (*state.past, state.run) if state.run is not None else state.past


def _receipt(run: TaskRun, sent: tuple[Sent, ...], count: int, *, newest: bool) -> ReceiptView:
    last = sent[-1]
    figures, facts = last.figures, last.facts
    tells = facts is None or facts.tells_cache
    reads = _reads(sent)
    rows = tuple(_rows(run, sent, figures, reads, tells=tells))
    answered = bool(figures.prompt_tokens)
    end = last.end
    return ReceiptView(
        number=last.number,
        count=count,
        step=last.built.step,
        purpose=last.built.purpose,
        endpoint=inert_line((end.endpoint if end is not None else "") or last.built.endpoint, LABEL_CHARS),
        model=inert_line((end.model if end is not None else "") or (facts.model if facts else ""), LABEL_CHARS),
        seed=last.built.seed,
        tokens=figures.prompt_tokens or last.built.tokens or sum(row.tokens for row in rows if not row.inside),
        context_tokens=facts.context_tokens if facts else 0,
        rows=rows,
        answered=answered,
        tells_cache=tells,
        cached=figures.cached_tokens,
        new=reads.new_tokens if answered and tells else 0,
        again=reads.again_tokens if answered and tells else 0,
        seconds=figures.prompt_seconds,
        answer_tokens=figures.answer_tokens,
        dollars=figures.dollars,
        compacting=_compacting(rows, sent) if newest else None,
        grammar_sha=last.built.grammar_sha,
    )


def _reads(sent: tuple[Sent, ...]) -> PromptReads:
    """Return what was read of the last prompt, which grew from the last one before it that the server told of.

    What asks for a summary is counted apart, and no prompt grows from it.
    """
    if sent[-1].built.purpose is Purpose.SUMMARY:
        return reads_of(sent[-1].figures, None)
    known = [
        grown_from(each.end, thinks=each.facts is not None and each.facts.thinks)
        for each in sent[:-1]
        if each.end is not None and each.end.figures.prompt_tokens
    ]
    return reads_of(sent[-1].figures, known[-1] if known else None)


def _rows(
    run: TaskRun, sent: tuple[Sent, ...], figures: AnswerFigures, reads: PromptReads, *, tells: bool
) -> Iterator[ReceiptRow]:
    """Yield the rows in the prompt's order, each with what the server had of it by where it stands."""
    told = bool(figures.prompt_tokens) and tells
    read = reads.new_tokens + reads.again_tokens
    per_token = figures.prompt_seconds / read if read else 0.0

    def measured(row: ReceiptRow, start: int) -> ReceiptRow:
        if not told:
            return row
        end = start + row.tokens
        cached = _overlap(start, end, 0, figures.cached_tokens)
        again = _overlap(start, end, figures.cached_tokens, figures.cached_tokens + reads.again_tokens)
        new = row.tokens - cached - again
        return replace(row, cached=cached, again=again, new=new, seconds=per_token * (new + again))

    template = ReceiptRow(TEMPLATE, 0)
    for row, start, pieces in _laid_out(sent):
        part = measured(row, start)
        if row.label == TEMPLATE:
            template = _plus(template, part)
            continue
        yield _marked(run, part, kept=True) if part.place else part
        for piece in pieces:
            inside = _marked(run, _piece_row(piece, row), kept=_kind(row) in _KEPT)
            yield measured(inside, start + piece.offset)
    if template.tokens:
        yield template


def _laid_out(sent: tuple[Sent, ...]) -> Iterator[tuple[ReceiptRow, int, tuple[Piece, ...]]]:
    """Yield the parts with where they begin (in tokens), and between them what the server's template puts there."""
    place = parts = marks = 0
    for each in sent:
        counted = tuple(counted_parts(each.built, each.since))
        parts += sum(part.tokens for part in counted)
        more = max(0, each.figures.prompt_tokens - parts - marks) if each.figures.prompt_tokens else 0
        marks += more
        # An answer comes right after the prompt before; the marks of roles stand behind it and at the end.
        behind = bool(counted) and counted[0].label == ANSWER
        for position, part in enumerate(counted):
            if position == int(behind) and more:
                yield ReceiptRow(TEMPLATE, more - more // 2), place, ()
                place += more - more // 2
                more //= 2
            row = ReceiptRow(
                inert_line(part.label, LABEL_CHARS),
                part.tokens,
                prompt=each.number,
                place=part.place,
                estimated=part.estimated,
            )
            yield row, place, part.pieces
            place += part.tokens
        if more:
            yield ReceiptRow(TEMPLATE, more), place, ()
            place += more


def _piece_row(piece: Piece, part: ReceiptRow) -> ReceiptRow:
    return ReceiptRow(
        label=inert_line(f"{piece.place} {piece.symbol}", LABEL_CHARS),
        tokens=piece.tokens,
        prompt=part.prompt,
        place=piece.place,
        inside=True,
        estimated=True,
    )


def _marked(run: TaskRun, row: ReceiptRow, *, kept: bool) -> ReceiptRow:
    """Return the row of a piece of code with what the user wants of it.

    What a compaction takes out by itself (not `kept`, not pinned) saves nothing more when it is dropped.
    """
    pinned = any(chunk.place == row.place for chunk in run.pinned)
    saves = row.tokens if kept or pinned else 0
    return replace(row, pinned=pinned, dropped=row.place in run.dropped, saves=saves)


def _plus(row: ReceiptRow, other: ReceiptRow) -> ReceiptRow:
    return replace(
        row,
        tokens=row.tokens + other.tokens,
        cached=row.cached + other.cached,
        new=row.new + other.new,
        again=row.again + other.again,
        seconds=row.seconds + other.seconds,
    )


def _overlap(start: int, end: int, low: int, high: int) -> int:
    return max(0, min(end, high) - max(start, low))


def _compacting(rows: tuple[ReceiptRow, ...], sent: tuple[Sent, ...]) -> Compacting:
    """Return what the summary in place of the steps would come to, at the speed this server read with so far."""
    stays = steps = 0
    kept = False
    for row in rows:
        if row.inside:
            # A piece in a part that stays can be dropped from it, one in a part that goes can be pinned to stay.
            change = -row.tokens if kept and row.dropped else row.tokens if row.pinned and not kept else 0
            stays, steps = stays + change, steps - change
            continue
        kept = _kind(row) in _KEPT and not row.dropped
        if kept:
            stays += row.tokens
        elif _kind(row) not in _BEGINNING and row.label != TEMPLATE:
            steps += row.tokens
    read = sum(each.figures.prompt_tokens - each.figures.cached_tokens for each in sent)
    seconds = sum(each.figures.prompt_seconds for each in sent)
    return Compacting(max(0, steps) if has_steps(sent) else 0, stays, stays * seconds / read if read else 0.0)


def _kind(row: ReceiptRow) -> str:
    return row.label.split(" ", 1)[0]
