"""Summary of the older steps where the context is full: of the model, else the workbench; the gate decides."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from agent_workbench.core.errors import ContextOverflow, ModelError, ModelUnavailable, UsageError
from agent_workbench.core.events import (
    ActionRejected,
    ActionResult,
    Author,
    ChunkPinned,
    ContextFilled,
    Event,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    Recorded,
    ReflexionNoted,
    ScratchpadChanged,
    TestsFinished,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposal_kinds import SummaryProposal
from agent_workbench.core.proposals import COMPACT, Preimage, Proposal, Verdict
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import decisions_of, newest_steps
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.engine.answer.model_request import observe_model, record_failure, send
from agent_workbench.engine.answer.step_protocol import ACTION_LINE
from agent_workbench.engine.compacted_context import PromptBudget, compact_context, estimate_summary
from agent_workbench.engine.prompt.prompt_size import CHARS_PER_TOKEN, PromptDraft, draft_prompt, summary_tokens
from agent_workbench.engine.prompt.scratchpad import notes_changed, notes_sha, summary_size
from agent_workbench.engine.prompt.step_history import (
    answers_of,
    answers_since_compaction,
    is_answer,
    last_compaction,
    steps_since_compaction,
)
from agent_workbench.engine.proposals import propose_draft
from agent_workbench.engine.recorder import Overtaken
from agent_workbench.engine.runtime.budget import clip, tokens_left
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext

PREFIX = "Summary:"
MAX_ASKED = 3
MIN_CHARS = 20

ASKED_CHARS = 100
CAME_CHARS = 120
REFLEXION_CHARS = 300

NEWS = (UserSaid, ChunkPinned, ScratchpadChanged)


async def request_summary(session: SessionContext) -> None:
    """Ask the model for a summary. If it cannot write one, propose the workbench's fallback summary.

    A full scratchpad is summarised instead of the steps; without a summary it stays as it is.
    """
    run = session.run
    if run.notes_full:
        if not await _ask(session, summary_size(session.settings.memory.summarise_threshold)):
            await session.record(ActionRejected(run.step, "the scratchpad could not be summarised; it stays as it is"))
        return
    if not answers_since_compaction(run.history):
        before = last_compaction(run.history)
        await session.record(
            await compact_context(await session.tool_context(), before.summary if before else "", Author.WORKBENCH)
        )
        return
    config = session.state.config
    denied = config is not None and config.approvals.summary is Approval.DENY
    if denied or _model_was_refused(run) or not await _ask(session):
        await _propose_own(session)


async def propose_summary(session: SessionContext) -> None:
    """Propose the summary that the model wrote, or the fallback summary if its answer holds none."""
    answer = session.run.answer
    if answer is None:
        return
    summary = parse_summary(answer.text)
    if session.run.notes_full:
        await _propose_notes(session, answer, summary)
        return
    if summary:
        await _propose(session, summary, Author.MODEL)
        return
    await session.record(ActionRejected(answer.step, f"{_summary_problem(answer.text)}; the workbench writes one"))
    await _propose_own(session)


def parse_summary(answer: str) -> str:
    """Return the summary in an answer, empty if it holds none."""
    return "" if _summary_problem(answer) else _without_prefix(answer)


def _without_prefix(answer: str) -> str:
    return answer.strip().removeprefix(PREFIX).strip()


def _summary_problem(answer: str) -> str:
    """Return why an answer holds no summary, empty if it holds one."""
    text = _without_prefix(answer)
    if ACTION_LINE.search(text):
        return "that is a step, no summary"
    size = sum(letter.isalnum() for letter in text)
    return (
        f"that is too short for a summary: {size} letters and digits of at least {MIN_CHARS}"
        if size < MIN_CHARS
        else ""
    )


async def _ask(session: SessionContext, tokens: int = 0) -> bool:
    """Ask the model for a summary of `tokens` tokens (0: as long as the context allows).

    Return False if there is no room or budget for it, or if the answer has no end.
    """
    session.publisher.show_activity("waiting for the model")
    try:
        while True:
            draft = await draft_prompt(session, await observe_model(session, Purpose.SUMMARY), Purpose.SUMMARY)
            wanted = tokens or summary_tokens(draft.facts.context_tokens)
            bounds = (wanted, draft.room, tokens_left(session.run, draft.likely_size))
            most = min(bound for bound in bounds if bound is not None)
            if most < wanted // 2:
                return False
            with suppress(Overtaken):
                return await _send(session, draft, most)
    except ModelError as error:
        await record_failure(session, Purpose.SUMMARY, error)
        return True


async def _send(session: SessionContext, draft: PromptDraft, tokens: int) -> bool:
    try:
        await send(session, draft, tokens)
    except ContextOverflow:
        return False
    except ModelUnavailable as error:
        if error.another:
            raise
        return False
    return session.run.answer is not None


async def _propose_own(session: SessionContext) -> None:
    facts = session.state.model_for(Purpose.SUMMARY)
    limit = summary_tokens(facts.context_tokens if facts else 0) * CHARS_PER_TOKEN
    text = fallback_summary(session.run.history, limit) or "Nothing was done yet."
    await _propose(session, text, Author.WORKBENCH)


async def _propose(session: SessionContext, summary: str, by: Author) -> None:
    outlook = await estimate_summary(await session.tool_context(), summary, by)
    draft = SummaryProposal(text=summary, fallback=by is Author.WORKBENCH, outlook=outlook)
    await propose_draft(session, COMPACT_TOOL, draft)


async def _propose_notes(session: SessionContext, answer: ModelAnswered, summary: str) -> None:
    if not summary:
        why = _summary_problem(answer.text)
        await session.record(ActionRejected(answer.step, f"{why}; the scratchpad stays as it is"))
        return
    run = session.run
    path = session.ports.memory.path(run.task, run.fork)
    shown = Preimage(path, notes_sha(session.state.scratchpad(run.task)))
    await propose_draft(session, COMPACT_TOOL, SummaryProposal(text=summary, paths=(path,), preimages=(shown,)))


def _model_was_refused(run: TaskRun) -> bool:
    """Return True if the user skipped a summary of the model, or rejected too many: then the model is not asked."""
    filled = (each.seq for each in reversed(run.history) if isinstance(each.event, ContextFilled))
    since = next(filled, -1)
    verdicts = [
        each.event.verdict
        for each in decisions_of(run.history)
        if each.seq > since and each.proposal is not None and each.proposal.tool == COMPACT
    ]
    return Verdict.SKIP in verdicts or verdicts.count(Verdict.REJECT) >= MAX_ASKED


def fallback_summary(history: Sequence[Recorded], limit_chars: int) -> str:
    """Return the previous summary and a line for each later step, in about `limit_chars` characters."""
    lines = list(_lines(steps_since_compaction(history)))
    before = last_compaction(history)
    earlier = clip(before.summary, limit_chars // 2 if lines else limit_chars) if before else ""
    left = limit_chars - len(earlier)
    kept: list[str] = []
    for line in reversed(lines):
        left -= len(line) + 1
        if left < 0:
            break
        kept.insert(0, line)
    more = len(lines) - len(kept)
    cut = [f"… {more} earlier steps are left out …"] if more else []
    return "\n".join([*([earlier] if earlier else []), *cut, *kept])


def _lines(events: Sequence[Recorded]) -> Iterator[str]:
    """Yield a line for each request, with its outcome."""
    lines = {each.seq: _line(each.event) for each in events}
    ran = [each.seq for each in events if isinstance(each.event, TestsFinished)]
    for each in decisions_of(events):
        if each.event.verdict in {Verdict.REJECT, Verdict.SKIP}:
            why = f": {each.event.reason}" if each.event.reason else ""
            refused = "skipped" if each.event.verdict is Verdict.SKIP else "rejected"
            lines[each.seq] = f"{_asked(each.proposal)}: {refused} by {each.event.by}{why}"
    for step in newest_steps(events):
        ended = step.result
        # The line of the checks says it already.
        if ended is not None and not any(step.seq < seq < ended.seq for seq in ran):
            came = _first_line(ended.event.observation)
            lines[ended.seq] = f"{_asked(step.proposal)}: {ended.event.result}: {came}"
    return (f"- {line}" for line in lines.values() if line)


def _line(event: Event) -> str:
    match event:
        case TestsFinished():
            return log_line(event)
        case ActionRejected():
            return f"step {event.step} was not taken: {_short(event.reason, CAME_CHARS)}"
        case ReflexionNoted():
            return f"reflexion: {_short(event.text, REFLEXION_CHARS)}"
        case ModelInterrupted(cut=True):
            fault = "repeated itself" if event.cause is InterruptCause.REPETITION else "was too long"
            return f"step {event.step}: the answer {fault}"
        case _:
            return ""


def _asked(proposal: Proposal | None) -> str:
    if proposal is None:
        return "a step"
    if proposal.kind is Permission.DIFF:
        return f"{proposal.tool} {', '.join(proposal.paths)}"
    if proposal.kind is Permission.CHECK:
        return proposal.tool.replace("_", " ")
    return f"{proposal.tool} {_short(proposal.text, ASKED_CHARS)}"


def _first_line(text: str) -> str:
    return _short(text.strip().partition("\n")[0], CAME_CHARS)


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


async def report_full_context(
    session: SessionContext,
    purpose: Purpose,
    size: int,
    context_tokens: int,
    reserve: int,
    by: Author = Author.WORKBENCH,
) -> None:
    """Record that a prompt of `size` tokens needs a compaction, or that no compaction can help.

    `reserve` are the tokens that a request for a summary adds. If they do not fit either, the summary covers only the
    steps up to the last answer, which the server has already read.
    """
    run = session.run
    if by is Author.WORKBENCH and is_exhausted(run, context_tokens):
        await session.record(_too_small(run, size, context_tokens))
        return
    answers = answers_since_compaction(run.history)
    fits = not context_tokens or context_tokens - size >= reserve
    through_seq = -1 if fits or not answers else answers[-1].seq
    await session.record(ContextFilled(run.answered_step + 1, purpose, size, context_tokens, through_seq, by))


def is_exhausted(run: TaskRun, context_tokens: int) -> bool:
    """Return True if the last compaction freed all it could, and nothing was added since."""
    if not run.compactions:
        return False
    filled = [each.event.context_tokens for each in run.history if isinstance(each.event, ContextFilled)]
    if filled and context_tokens < filled[-1]:
        return False
    since = steps_since_compaction(run.history)
    return not any(is_answer(each.event) or isinstance(each.event, NEWS) for each in since)


def _too_small(run: TaskRun, size: int, context_tokens: int) -> TroubleMet:
    begun = bool(answers_of(run.history))
    least = "with all older steps in a summary its next" if begun else "without the code that was found its first"
    return TroubleMet(
        "model",
        f"the context of {context_tokens or 'unknown'} tokens is too small for {run.task}: "
        f"{least} prompt still has {size or 'too many'}",
        "serve the model with a larger context (model.context_tokens), unpin code, allow fewer tools or skills, "
        "or abort and split the task",
    )


class CompactTool(BuiltinTool, frozen=True):
    """Tool of the workbench that applies an approved summary, which frees room in the context."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the summary as edited by the user; raise `UsageError` if it is empty or too long."""
        if not text.strip():
            raise UsageError("a summary needs words", advice="reject it with a reason to have the model write another")
        waiting = context.run.gate.proposal
        if context.run.notes_full and waiting is not None:
            return SummaryProposal(text=text.strip(), paths=waiting.paths, preimages=waiting.preimages)
        budget = PromptBudget(context)
        (size,) = await budget.count([text])
        most = budget.context_tokens // 4
        if size > most:
            raise UsageError(f"the summary has {size} tokens, there is room for {most}", advice="make it shorter")
        return SummaryProposal(text=text.strip(), outlook=await estimate_summary(context, text.strip(), Author.USER))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Compact the context, or replace the scratchpad. The observation is empty: the next prompt has the summary."""
        fallback = isinstance(proposal, SummaryProposal) and proposal.fallback
        by = Author.USER if proposal.edited else Author.WORKBENCH if fallback else Author.MODEL
        if context.run.notes_full:
            return await _replace_notes(context, proposal)
        return ToolResult("", effects=(await compact_context(context, proposal.text, by),))


async def _replace_notes(context: ToolContext, proposal: Proposal) -> ToolResult:
    """Archive the scratchpad and write the summary in its place, unless it changed since it was summarized.

    If a crash came after the summary was written, it is only recorded.
    """
    memory, task, fork = context.ports.memory, context.task.id, context.run.fork
    text, (shown,) = f"{proposal.text}\n", proposal.preimages
    found = await memory.read_scratchpad(task, fork)
    recorded = context.ports.redacted(found)
    if notes_sha(recorded) == shown.sha:
        found = await memory.archive_scratchpad(task, found, text, context.ports.clock.now(), fork)
        recorded = context.ports.redacted(found)
    done = found == text
    by = Author.MODEL if done else Author.USER
    changed = recorded != context.state.scratchpad(task)
    effects: tuple[Event, ...] = (notes_changed(context.settings, task, found, by),) if changed else ()
    return ToolResult("", ActionResult.OK if done else ActionResult.REFUSED, effects)


COMPACT_TOOL = CompactTool(name=COMPACT, summary="sum up the older steps", permission=Permission.SUMMARY)
