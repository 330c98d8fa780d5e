"""The receipt of a prompt: rows of its parts with their tokens, what the server had cached, and the reading time."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    ModelObserved,
    PromptBuilt,
    Recorded,
    SkillLeftOut,
    SkillsChosen,
)
from agent_workbench.core.intents import ChooseSkill, DropChunk, PinChunk
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.outcomes import PromptPreviewed
from agent_workbench.core.state.prompt_reads import PromptReads, reads_of, reusable_figures
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.amounts import dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.sent_prompts import (
    PartPiece,
    SentPrompt,
    counted_parts,
    has_answers,
    prompts_in_context,
    sent_prompts,
)

LABEL_CHARS = 300
NOTE_CHARS = 200
DROPPED = "dropped, in the prompt until the next summary"
TEMPLATE = "template"
ANSWER = "answer"
# Parts that a compaction keeps: the first ones as they are, the others rebuilt.
SKILL = "skill"
BEGINNING = ("rules", "task", SKILL)
KEPT = ("map", "knowledge", "scratchpad", "pinned", "code", "user", "change", "failing")

HEADING = f"{'tokens':>9} {'seconds':>8}  {'read':<30} part"


class ReceiptRow(Struct, frozen=True):
    """A part of the prompt, or a piece of code within the part above it (`inside`).

    `tokens` is the sum of `cached`, `new` and `again` if the server reports its cache. `prompt` is the number of the
    prompt in which the part first appeared, `seconds` its share of the reading time. A piece has a `place`, by which it
    is pinned or dropped; dropping it frees `saves` tokens at the next compaction. `estimated`: not counted by the
    server. `skill` is the name of a skill, `note` says why it is in the prompt, or why it is left out.
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
    skill: str = ""
    note: str = ""

    @property
    def changeable(self) -> bool:
        """True if the user may pin or drop the part."""
        return bool(self.place or self.skill)

    @property
    def pin(self) -> PinChunk | ChooseSkill:
        """The intent of the key that pins."""
        return ChooseSkill(self.skill) if self.skill else PinChunk(self.place, not self.pinned)

    @property
    def drop(self) -> DropChunk | ChooseSkill:
        """The intent of the key that drops."""
        return ChooseSkill(self.skill, chosen=False) if self.skill else DropChunk(self.place)

    @property
    def read(self) -> str:
        """Cache result as text: `cached`, `new`, `re-read`, or the number of each."""
        kinds = ((self.cached, "cached"), (self.new, "new"), (self.again, "re-read"))
        said = [(tokens, word) for tokens, word in kinds if tokens]
        return said[0][1] if len(said) == 1 else ", ".join(f"{tokens:,} {word}" for tokens, word in said)


class ReceiptMarks(Struct, frozen=True):
    """Places of the code that the user pinned, or dropped."""

    pinned: frozenset[str]
    dropped: frozenset[str]


def receipt_rows(
    marks: ReceiptMarks, sent: tuple[SentPrompt, ...], figures: AnswerFigures, reads: PromptReads, *, tells: bool
) -> Iterator[ReceiptRow]:
    """Yield the rows in the prompt's order; a row's position decides what was cached."""
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
        yield _marked(marks, part, kept=True) if part.place else part
        for piece in pieces:
            inside = _marked(marks, _piece_row(piece, row), kept=part_kind(row) in KEPT)
            yield measured(inside, start + piece.offset)
    if template.tokens:
        yield template


def _laid_out(sent: tuple[SentPrompt, ...]) -> Iterator[tuple[ReceiptRow, int, tuple[PartPiece, ...]]]:
    """Yield the parts with their offsets in tokens, and between them what the chat template adds."""
    place = parts = marks = 0
    for each in sent:
        counted = tuple(counted_parts(each.built, each.since))
        parts += sum(part.tokens for part in counted)
        more = max(0, each.figures.prompt_tokens - parts - marks) if each.figures.prompt_tokens else 0
        marks += more
        # An answer directly follows the previous prompt; the template's role marks follow it and end the prompt.
        behind = bool(counted) and counted[0].label == ANSWER
        for position, part in enumerate(counted):
            if position == int(behind) and more:
                yield ReceiptRow(TEMPLATE, more - more // 2), place, ()
                place += more - more // 2
                more //= 2
            row = ReceiptRow(
                sanitize_line(part.label, LABEL_CHARS),
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


def _piece_row(piece: PartPiece, part: ReceiptRow) -> ReceiptRow:
    return ReceiptRow(
        label=sanitize_line(f"{piece.place} {piece.symbol}", LABEL_CHARS),
        tokens=piece.tokens,
        prompt=part.prompt,
        place=piece.place,
        inside=True,
        estimated=True,
    )


def _marked(marks: ReceiptMarks, row: ReceiptRow, *, kept: bool) -> ReceiptRow:
    """Return the row of a piece of code with the user's marks.

    Dropping a piece that the compaction removes anyway (not `kept`, not pinned) saves nothing more.
    """
    pinned = row.place in marks.pinned
    saves = row.tokens if kept or pinned else 0
    return replace(row, pinned=pinned, dropped=row.place in marks.dropped, saves=saves)


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


def with_skills(rows: tuple[ReceiptRow, ...], choice: SkillsChosen | None) -> tuple[ReceiptRow, ...]:
    """Return the rows with the reasons for skills, followed by a row for each skill that is left out."""
    if choice is None:
        return rows
    rows = tuple(_with_skill(row, choice) for row in rows)
    shown = {row.skill for row in rows}
    return (*rows, *(_left_out(each) for each in choice.left_out if each.name not in shown))


def _with_skill(row: ReceiptRow, choice: SkillsChosen) -> ReceiptRow:
    """Return the row of a skill with its reason; one that was dropped after a prompt is still in the next ones."""
    kind, _, name = row.label.partition(" ")
    taken = {each.name: each.reason for each in choice.skills}
    if kind != SKILL or name not in taken.keys() | {each.name for each in choice.left_out}:
        return row
    note = sanitize_line(taken[name], NOTE_CHARS) if name in taken else DROPPED
    return replace(row, skill=name, note=note, dropped=name not in taken)


def _left_out(skill: SkillLeftOut) -> ReceiptRow:
    note = f"left out: {sanitize_line(skill.reason, NOTE_CHARS)}"
    return ReceiptRow(f"{SKILL} {skill.name}", 0, dropped=True, skill=skill.name, note=note)


def part_kind(row: ReceiptRow) -> str:
    """Return the first word of a row's label, which is the kind of the part."""
    return row.label.split(" ", 1)[0]


class CompactionEstimate(Struct, frozen=True):
    """Estimated effect of a compaction now: tokens freed at most, tokens to read anew, and their seconds."""

    frees: int
    reads: int
    seconds: float


class ReceiptView(Struct, frozen=True):
    """Receipt of prompt `number` of `count`. `tokens` are exact if the server reported them.

    `context_tokens` is 0 if unknown. `answered` is False until an answer reports the figures. `tells_cache` is False if
    the server does not report its cache. `sent` is False for the next prompt; `seconds` are then estimated.
    `switched_from` is the model of the prompt before, if the user chose another one since.
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
    compacting: CompactionEstimate | None = None
    grammar_sha: str = ""
    sent: bool = True
    switched_from: str = ""


def count_prompts(state: SessionState) -> int:
    """Return the number of prompts in the session."""
    return sum(isinstance(each.event, PromptBuilt) for run in state.conversations for each in run.history)


def view_receipt(state: SessionState, number: int = 0) -> ReceiptView | None:
    """Return the receipt of prompt `number`, from 1 (0: the newest); None if there is none."""
    count = count_prompts(state)
    wanted = number or count
    before = 0
    met = dict(state.models)
    observed = (each.event for each in state.opening if isinstance(each.event, ModelObserved))
    met |= {event.purpose: event.facts for event in observed}
    for run in state.conversations:
        sent = tuple(sent_prompts(run.history, before, met))
        if before < wanted <= before + len(sent):
            return _receipt(run, prompts_in_context(sent[: wanted - before]), count, newest=wanted == count)
        before += len(sent)
    return None


def view_next_prompt(state: SessionState, preview: PromptPreviewed) -> ReceiptView | None:
    """Return the receipt of the prompt that waits to be sent; None without a task."""
    run, count = state.run, count_prompts(state)
    if run is None:
        return None
    before = count - sum(isinstance(each.event, PromptBuilt) for each in run.history)
    history = (*run.history, Recorded(state.seq + 1, "", preview.built))
    sent = tuple(sent_prompts(history, before, dict(state.models)))
    view = _receipt(run, prompts_in_context(sent), count + 1, newest=True)
    shown = {row.place for row in view.rows}
    dropped = (place for place in run.dropped if place not in shown)
    left_out = tuple(
        ReceiptRow(f"code {sanitize_line(place, LABEL_CHARS)}", 0, place=place, dropped=True) for place in dropped
    )
    return replace(view, rows=(*view.rows, *left_out), seconds=preview.reading_seconds, compacting=None, sent=False)


def _receipt(run: TaskRun | Chat, sent: tuple[SentPrompt, ...], count: int, *, newest: bool) -> ReceiptView:
    last = sent[-1]
    figures, facts = last.figures, last.facts
    tells = facts is None or facts.tells_cache
    reads = _reads(sent)
    marks = ReceiptMarks(frozenset(chunk.place for chunk in run.pinned), frozenset(run.dropped))
    rows = tuple(receipt_rows(marks, sent, figures, reads, tells=tells))
    shown = with_skills(rows, _skills_of(run, last)) if isinstance(run, TaskRun) else rows
    answered = bool(figures.prompt_tokens)
    end = last.end
    return ReceiptView(
        number=last.number,
        count=count,
        step=last.built.step,
        purpose=last.built.purpose,
        endpoint=sanitize_line((end.endpoint if end is not None else "") or last.built.endpoint, LABEL_CHARS),
        model=sanitize_line((end.model if end is not None else "") or (facts.model if facts else ""), LABEL_CHARS),
        seed=last.built.seed,
        tokens=figures.prompt_tokens or last.built.tokens or sum(row.tokens for row in rows if not row.inside),
        context_tokens=facts.context_tokens if facts else 0,
        rows=shown,
        answered=answered,
        tells_cache=tells,
        cached=figures.cached_tokens,
        new=reads.new_tokens if answered and tells else 0,
        again=reads.again_tokens if answered and tells else 0,
        seconds=figures.prompt_seconds,
        answer_tokens=figures.answer_tokens,
        dollars=figures.dollars,
        compacting=_compacting(rows, sent) if newest and isinstance(run, TaskRun) else None,
        grammar_sha=last.built.grammar_sha,
        switched_from=sanitize_line(last.switched_from, LABEL_CHARS),
    )


def _skills_of(run: TaskRun, prompt: SentPrompt) -> SkillsChosen | None:
    """Return the choice of skills as of this prompt, None if none was recorded."""
    newest = prompt.since[-1].seq if prompt.since else -1
    choices = (each.event for each in reversed(run.history) if each.seq <= newest)
    return next((event for event in choices if isinstance(event, SkillsChosen)), None)


def _reads(sent: tuple[SentPrompt, ...]) -> PromptReads:
    """Return the reads of the last prompt, which grew from the last reported one before it.

    A prompt that asks for a summary is counted apart, and no prompt grows from it.
    """
    if sent[-1].built.purpose is Purpose.SUMMARY:
        return reads_of(sent[-1].figures, None)
    known = [
        reusable_figures(each.end, thinks=each.facts is not None and each.facts.thinks)
        for each in sent[:-1]
        if each.end is not None and each.end.figures.prompt_tokens
    ]
    return reads_of(sent[-1].figures, known[-1] if known else None)


def _compacting(rows: tuple[ReceiptRow, ...], sent: tuple[SentPrompt, ...]) -> CompactionEstimate:
    """Return the estimate for replacing the steps by a summary, at the reading speed measured so far."""
    stays = steps = 0
    kept = False
    for row in rows:
        if row.inside:
            # A piece can be dropped from a part that stays, or pinned out of a part that goes.
            change = -row.tokens if kept and row.dropped else row.tokens if row.pinned and not kept else 0
            stays, steps = stays + change, steps - change
            continue
        kept = part_kind(row) in KEPT and not row.dropped
        if kept:
            stays += row.tokens
        elif part_kind(row) not in BEGINNING and row.label != TEMPLATE:
            steps += row.tokens
    read = sum(each.figures.prompt_tokens - each.figures.cached_tokens for each in sent)
    seconds = sum(each.figures.prompt_seconds for each in sent)
    return CompactionEstimate(max(0, steps) if has_answers(sent) else 0, stays, stays * seconds / read if read else 0.0)


def head_lines(view: ReceiptView) -> tuple[str, ...]:
    """Return the lines about the whole prompt: its size, what was read, and who answered."""
    size = f" of {view.context_tokens:,}" if view.context_tokens else ""
    share = f" ({round(100 * view.tokens / view.context_tokens)} %)" if view.context_tokens else ""
    seed = f", seed {view.seed}" if view.seed else ""
    by = " at ".join(dict.fromkeys(filter(None, (view.model, view.endpoint))))
    switched = (_switched(view),) if view.switched_from else ()
    return (f"{view.tokens:,}{size} tokens{share}", _read(view), f"{by}{seed}", *switched)


def _switched(view: ReceiptView) -> str:
    """Return the model before, and the re-read tokens; none are known if the prompt before was never answered."""
    if not (view.answered and view.tells_cache):
        return f"switched from {view.switched_from}: the prompt is read again"
    return f"switched from {view.switched_from}" + (f": {view.again:,} tokens re-read" if view.again else "")


def _read(view: ReceiptView) -> str:
    if not view.sent:
        unknown = "seconds to read unknown until this model has answered once"
        return f"not sent yet · {f'about {view.seconds:.1f} s to read' if view.seconds else unknown}"
    if not view.answered:
        return "not answered yet, so the tokens read are unknown"
    if not view.tells_cache:
        read = "the server does not report its cache"
    else:
        read = f"{view.cached:,} cached · {view.new:,} new · {view.again:,} re-read"
    told = (
        read,
        f"{view.seconds:.1f} s" if view.seconds else "",
        f"answer {view.answer_tokens:,}" if view.answer_tokens else "",
        dollars_text(view.dollars) if view.dollars else "",
    )
    return " · ".join(filter(None, told))


def table_lines(view: ReceiptView) -> Iterator[str]:
    """Yield a line for each part, indented ones for pieces of code, and the estimate of a compaction."""
    yield HEADING
    for row in view.rows:
        tokens = f"{'~' if row.estimated else ''}{row.tokens:,}"
        seconds = f"{row.seconds:.2f}" if row.seconds >= 0.005 else ""
        yield f"{tokens:>9} {seconds:>8}  {row.read:<30} {'  ' if row.inside else ''}{row.label}{_mark(row)}"
    if view.compacting is not None:
        now = view.compacting
        cost = f", about {now.seconds:.1f} s" if now.seconds >= 0.05 else ""
        yield f"a summary of the steps frees up to {now.frees:,} tokens and re-reads {now.reads:,}{cost}"


def _mark(row: ReceiptRow) -> str:
    if row.note:
        return f"  ({row.note})"
    if row.pinned:
        return "  (pinned)"
    if row.dropped:
        return f"  (dropped, frees {row.saves:,} at the next summary)" if row.saves else "  (dropped)"
    return ""
