"""The receipt of a prompt: its parts with their tokens, what the server had cached, and the reading time."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    ModelObserved,
    PromptBuilt,
    Recorded,
    SkillsChosen,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.outcomes import PromptPreviewed
from agent_workbench.core.state.prompt_reads import PromptReads, reads_of, reusable_figures
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.amounts import dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.receipt_rows import (
    BEGINNING,
    KEPT,
    LABEL_CHARS,
    TEMPLATE,
    ReceiptMarks,
    ReceiptRow,
    part_kind,
    receipt_rows,
    with_skills,
)
from agent_workbench.views.sent_prompts import SentPrompt, has_answers, prompts_in_context, sent_prompts

HEADING = f"{'tokens':>9} {'seconds':>8}  {'read':<30} part"


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
