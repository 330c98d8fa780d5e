"""The status line: figures of the moment, each with a rank for narrow terminals."""

from msgspec import Struct

from agent_workbench.core.approval_rules import mode_label
from agent_workbench.core.consult_requests import EndpointTier
from agent_workbench.core.events import ModelAnswered, ModelInterrupted, PromptBuilt
from agent_workbench.core.ids import session_suffix
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.settings import ApprovalMode
from agent_workbench.core.state.prompt_reads import newest_reads, reads_of
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.core.text.amounts import dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Tone

REREAD_LIMIT = 0.01
"""Share of a task's prompt tokens that may be re-read before it is a warning."""


class Figure(Struct, frozen=True):
    """One figure of the line; those with the highest `rank` are left out first. `short` is a shorter text, or empty."""

    text: str
    rank: int
    tone: Tone = Tone.DIM
    short: str = ""


class StatusView(Struct, frozen=True):
    """The figures from left to right."""

    figures: tuple[Figure, ...]


def view_status(update: SessionUpdate) -> StatusView:
    """Return the status line."""
    state = update.state
    return StatusView(
        (
            *(_mode(state), *_model(update), *_lacks(state), *_context(update), *_reads(update), *_task(state)),
            *_backlog(update),
            *(*_price(state), *_speed(state), *_session(state)),
        )
    )


def _mode(state: SessionState) -> Figure:
    mode = state.mode.mode
    return Figure(mode_label(mode), 0, Tone.DIM if mode is ApprovalMode.ASK else Tone.WARN)


def _model(update: SessionUpdate) -> tuple[Figure, ...]:
    state = update.state
    if state.model is None or update.live.awaits_model:
        return (Figure("no model yet", 1),)
    file = sanitize_line(state.model.model.rsplit("/", 1)[-1], 28)
    name = Figure(file.removesuffix(".gguf"), 1, Tone.PLAIN)
    return (Figure("scripted demo", 0, Tone.WARN), name) if state.model.scripted else (name, *_tier(update.live.tier))


def _tier(tier: EndpointTier | None) -> tuple[Figure, ...]:
    """Return the kind of the endpoint in use; one that costs money, or is elsewhere, is told before other figures."""
    if tier is None:
        return ()
    rank, tone = {EndpointTier.PAID: (1, Tone.WARN), EndpointTier.REMOTE: (3, Tone.PLAIN)}.get(tier, (9, Tone.DIM))
    return (Figure(tier.value, rank, tone),)


def _lacks(state: SessionState) -> tuple[Figure, ...]:
    """Return a word for each missing capability of the server; the transcript explains them."""
    facts = state.model
    if facts is None:
        return ()
    bare = not facts.takes_grammar or facts.endpoint in state.ungrammatical
    words = (*(("no grammar",) if bare else ()), *(("no token counts",) if not facts.counts_tokens else ()))
    return tuple(Figure(word, 4, Tone.WARN) for word in words)


def _backlog(update: SessionUpdate) -> tuple[Figure, ...]:
    """Return how far the copies that other machines read are behind, if that lasts."""
    backlog = update.live.backlog
    if not backlog.text:
        return ()
    words = f"{backlog.lines} not copied"
    return (Figure(f"{words} for {backlog.seconds:.0f} s", 1, Tone.WARN, words),)


def _price(state: SessionState) -> tuple[Figure, ...]:
    dollars = sum(each.dollars for each in state.conversations)
    return (Figure(dollars_text(dollars), 3, Tone.PLAIN),) if dollars > 0 else ()


def _context(update: SessionUpdate) -> tuple[Figure, ...]:
    state = update.state
    used = _prompt_tokens(update)
    size = state.model.context_tokens if state.model is not None else 0
    if not used:
        return ()
    if not size:
        return (Figure(f"context {_short(used)}", 2),)
    share = used / size
    tone = Tone.BAD if share > 0.9 else Tone.WARN if share > 0.75 else Tone.DIM
    return (Figure(f"context {_short(used)}/{_short(size)}", 2, tone, f"{_short(used)}/{_short(size)}"),)


def _prompt_tokens(update: SessionUpdate) -> int:
    """Return the length of the newest prompt: the server's figure, else the sum of its parts."""
    state, streaming = update.state, update.live.streaming
    if streaming is not None and streaming.prompt_total:
        return streaming.prompt_total
    for recorded in reversed(state.main.history if state.main is not None else ()):
        event = recorded.event
        if isinstance(event, ModelAnswered | ModelInterrupted) and event.figures.prompt_tokens:
            return event.figures.prompt_tokens
        if isinstance(event, PromptBuilt):
            break
    return state.prompt.tokens or state.figures.prompt_tokens if state.prompt is not None else 0


def _reads(update: SessionUpdate) -> tuple[Figure, ...]:
    """Return the new and re-read prompt tokens, live, with the re-read share of the task."""
    state, run = update.state, update.state.run
    if run is None:
        return ()
    if state.model is not None and not state.model.tells_cache:
        return (Figure("cache unknown", 5),) if run.reads.prompt_tokens else ()
    streaming = update.live.streaming
    if streaming is not None and streaming.prompt_total:
        now = AnswerFigures(prompt_tokens=streaming.prompt_total, cached_tokens=streaming.prompt_cached)
        # A request for a summary is counted apart.
        before = None if run.phase is Phase.COMPACTING else run.last_figures
        reads = reads_of(now, before)
        task = run.reads.plus(reads)
    else:
        newest = newest_reads(run.history, thinks=state.model is not None and state.model.thinks)
        if newest is None:
            return ()
        reads, task = newest, run.reads
    words = f"{_short(reads.new_tokens)} new, {_short(reads.again_tokens)} re-read"
    often = task.again_share > REREAD_LIMIT
    tone = Tone.WARN if often else Tone.DIM
    return (Figure(f"prompt: {words} ({100 * task.again_share:.1f} %)", 3 if often else 5, tone, words),)


def _speed(state: SessionState) -> tuple[Figure, ...]:
    speed = state.figures.tokens_per_second
    return (Figure(f"{speed:.0f} tokens/s", 7),) if speed else ()


def _task(state: SessionState) -> tuple[Figure, ...]:
    run = state.run
    if run is None:
        return ()
    limit = state.config.limits.max_tool_calls_per_task if state.config is not None else 0
    steps = f"step {run.tool_calls}/{limit}" if limit else f"step {run.step}"
    budget = _budget(run)
    return (
        Figure(run.task, 3, Tone.PLAIN),
        Figure(sanitize_line(run.workspace.branch, 40), 6),
        Figure(steps, 4),
        *((Figure(budget, 8),) if budget else ()),
    )


def _budget(run: TaskRun) -> str:
    budget = run.definition.budget
    left = []
    if budget.tokens:
        left.append(f"{_short(max(0, budget.tokens - run.tokens))} tokens")
    if budget.minutes:
        left.append(f"{max(0.0, budget.minutes - run.working_seconds / 60):.0f} min")
    if budget.dollars is not None:
        left.append(f"${max(0.0, budget.dollars - run.dollars):.2f}")
    return f"{', '.join(left)} left" if left else ""


def _session(state: SessionState) -> tuple[Figure, ...]:
    found = []
    if state.config is not None and not state.config.sandbox.holds:
        found.append(Figure("no sandbox", 0, Tone.BAD))
    if state.rules:
        found.append(Figure("1 rule" if len(state.rules) == 1 else f"{len(state.rules)} rules", 2, Tone.WARN))
    if state.session:
        found.append(Figure(session_suffix(state.session) if "-" in state.session else state.session, 10))
    return tuple(found)


def _short(tokens: int) -> str:
    return f"{tokens}" if tokens < 1000 else f"{tokens / 1000:.1f}k"
