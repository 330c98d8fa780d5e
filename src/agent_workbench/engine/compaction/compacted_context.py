"""What a compaction leaves: the summary with what stays as it is, so that the next prompt is about half the context."""

from asyncio import to_thread
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import ModelError
from agent_workbench.core.events import (
    ActionProposed,
    Author,
    CodeRetrieved,
    ContextCompacted,
    ContextFilled,
    PatchApplied,
    ProposalReplaced,
    Recorded,
    StepUndone,
    TestsFinished,
)
from agent_workbench.core.fold import fold
from agent_workbench.core.model import Purpose
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.state.session_state import Phase, TaskRun
from agent_workbench.core.state.shown_code import chunks_shown_by
from agent_workbench.engine.compaction.change_text import tell_changes
from agent_workbench.engine.compaction.code_relocation import as_it_is_now
from agent_workbench.engine.prompt.messages import build_parts, to_messages
from agent_workbench.engine.prompt.parts import notes_of
from agent_workbench.engine.prompt.prompt_size import CHARS_PER_TOKEN, least_answer_tokens, mark_tokens, summary_tokens
from agent_workbench.engine.prompt.prompt_text import SUMMARY
from agent_workbench.engine.prompt.repeated_lines import added_lines, change_shown, is_as_written, split_repeated
from agent_workbench.engine.prompt.step_history import answers_of, last_compaction, steps_of
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.check_runs import describe_checks

PIECE_CHARS = (0, 6_000, 2_000, 700, 250)
"""To how much each piece of the newest steps is cut, one after the other, until all fits; 0 cuts nothing."""
LEAST_CONTEXT = 2_048
JOIN_TOKENS = 16
MOST_CODE = 16
"""How many pieces of code are looked at, whether they fit beside what stays."""


async def condense(context: ToolContext, summary: str, by: Author) -> ContextCompacted:
    """Return the compaction that puts `summary` in place of the older steps, with the rest as it stands now."""
    scale = Scale(context)
    bare = ContextCompacted(
        context.run.step, summary, by, context.state.seq, piece_chars=PIECE_CHARS[-1], notes_chars=scale.notes_chars
    )
    # What was pinned is not to be cut as long as there is room at all: what fills up comes after it.
    room = max(0, scale.free - await scale.size_after(bare))
    pinned = await _pinned(context, scale, room * 3 // 4)
    fixed = await scale.size_after(replace(bare, pinned=pinned))
    most = scale.most(fixed)
    left = max(0, most - fixed)
    diff = await tell_changes(context, scale.cut, left // 3, context.run.tree)
    ended = await to_thread(_checks_ended, context.run, added_lines(diff))
    kept = replace(bare, pinned=pinned, failing=await scale.cut(ended, left // 3), diff=diff)
    kept = await _with_newest_steps(scale, kept, most)
    kept = await _with_step_before(scale, kept, most)
    kept = await _newest_apart(context, scale, kept, left // 3)
    # The scratchpad takes no room from the code that was found.
    (noted,) = await scale.count([clip(notes_of(context.run.history), kept.notes_chars)])
    most = min(scale.free, most + noted)
    kept = await _with_code(context, scale, kept, most)
    return await _with_more_notes(scale, kept, most)


class Scale(Struct, frozen=True):
    """Counts tokens as the server does, or by the length of the text where it cannot."""

    context: ToolContext

    @property
    def purpose(self) -> Purpose:
        """What is asked next."""
        return Purpose.REFLEXION if self.context.run.compacts_for is Phase.REFLECTING else Purpose.EXECUTOR

    @property
    def context_tokens(self) -> int:
        """The context as it was found to be when it was full."""
        filled = [each.event for each in self.context.run.history if isinstance(each.event, ContextFilled)]
        facts = self.context.state.model_for(self.purpose)
        known = (filled[-1].context_tokens if filled else 0) or (facts.context_tokens if facts else 0)
        if known or not self.context.run.compaction_asked:
            return known or LEAST_CONTEXT
        # The user wants a summary of a server that does not tell: what has been read by then has its room.
        parts = build_parts(self.context.state, self.purpose)
        return max(LEAST_CONTEXT, sum(len(part.text) for part in parts) // CHARS_PER_TOKEN)

    def most(self, fixed: int) -> int:
        """Return how large the next prompt may be: half the context, or half of what is free beside what must stay.

        Where no step was taken yet, it is the first prompt, and the code that was found is worth more than the room.
        """
        begun = bool(answers_of(self.context.run.history))
        share = (fixed + self.free) // 2 if begun else (fixed + 3 * self.free) // 4
        return min(self.free, max(self.context_tokens // 2, share))

    @property
    def free(self) -> int:
        """How large the next prompt may be at most, or there would be no room for its answer and the next summary."""
        context = self.context_tokens
        return context - summary_tokens(context) - least_answer_tokens(context)

    @property
    def notes_chars(self) -> int:
        """The characters of the scratchpad that stay in any case; more of it has what room the code leaves."""
        return max(PIECE_CHARS[-1], self.context_tokens // 16 * CHARS_PER_TOKEN)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the tokens of each text; what is counted is sent, so it is what may be told."""
        texts = [self.context.ports.redacted(text) for text in texts]
        facts = self.context.state.model_for(self.purpose)
        if facts is None or facts.counts_tokens:
            try:
                return await self.context.ports.model.count_tokens(texts, self.purpose)
            except ModelError:
                pass  # a server that is gone is met when it is asked; a summary must not fail for it
        return tuple(len(text) // CHARS_PER_TOKEN + 1 for text in texts)

    async def size_after(self, compacted: ContextCompacted) -> int:
        """Return how large the next prompt would be after this compaction, its summary's question included."""
        state = self.context.state
        parts = build_parts(fold(state, Recorded(state.seq + 1, "", compacted)), self.purpose)
        counts = await self.count([*(part.text for part in parts), SUMMARY])
        # The question and its answer are two messages more.
        return sum(counts) + ceil(mark_tokens(self.context.run.history) * (len(to_messages(parts)) + 2))

    async def cut(self, text: str, tokens: int) -> str:
        """Return the text in about so many tokens, the cut stated; nothing where not even a few lines fit."""
        (size,) = await self.count([text])
        if size <= tokens:
            return text
        chars = len(text) * tokens * 9 // (size * 10)
        return clip(text, chars) if chars >= PIECE_CHARS[-1] // 2 else ""


def _checks_ended(run: TaskRun, shown: Collection[str]) -> str:
    """Return what the newest run of the checks said, nothing where there was none; `shown` as `describe_checks`."""
    finished, changed = None, False
    for event in (each.event for each in reversed(run.history)):
        if isinstance(event, TestsFinished):
            finished = event
            break
        changed = changed or isinstance(event, PatchApplied | StepUndone)
    if finished is None:
        return ""
    if finished.purpose is CheckPurpose.BASELINE:
        return f"Before any change:\n{describe_checks(finished)}"
    told = describe_checks(finished, run.baseline, shown)
    return f"Before the newest change, on which they did not run yet:\n{told}" if changed else told


async def _newest_apart(context: ToolContext, scale: Scale, kept: ContextCompacted, tokens: int) -> ContextCompacted:
    """Return the compaction whose diff ends before the newest steps, where these show whole what they changed."""
    history = context.run.history
    newer = [each.event for each in history if each.seq > kept.through_seq]
    applied = [event for event in newer if isinstance(event, PatchApplied)]
    proposals = {event.proposal.id: event.proposal for event in newer if isinstance(event, ActionProposed)}
    proposals |= {event.proposal.id: event.proposal for event in newer if isinstance(event, ProposalReplaced)}
    whole = all(each.proposal_id in proposals and is_as_written(proposals[each.proposal_id]) for each in applied)
    undone = any(isinstance(event, StepUndone) for event in newer)
    if not applied or not whole or undone:
        return kept
    older = (each.event for each in reversed(history) if each.seq <= kept.through_seq)
    trees = (event.tree for event in older if isinstance(event, PatchApplied | StepUndone))
    before = next(trees, context.run.workspace.tree)
    diff = await tell_changes(context, scale.cut, tokens, before)
    return replace(kept, diff=diff, newest_apart=True)


async def _pinned(context: ToolContext, scale: Scale, tokens: int) -> tuple[Chunk, ...]:
    """Return the pinned code as it is now, the last of it in fewer lines where there is no room for all."""
    found = [await as_it_is_now(context.workspace, chunk) for chunk in context.run.pinned]
    pinned: list[Chunk] = []
    for chunk in found:
        if chunk is None:
            continue
        (size,) = await scale.count([chunk.text])
        lines = chunk.text.split("\n")
        fitting = lines if size <= tokens else lines[: len(lines) * tokens // size]
        tokens -= min(size, tokens)
        if fitting:
            last = chunk.first_line + len(fitting) - 1
            pinned.append(replace(chunk, text="\n".join(fitting), last_line=last))
    return tuple(pinned)


async def _with_newest_steps(scale: Scale, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with the last steps as they were said: two, or one, or what came of it, cut as need be.

    What came of the last step the model may never have seen: uncut it may take all the room there is.
    """
    for candidate in _candidates(scale.context.run.history, kept):
        whole = candidate.piece_chars == 0
        if await scale.size_after(candidate) <= (scale.free if whole else most):
            return candidate
    return kept


async def _with_step_before(scale: Scale, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with one step more, where it fits easily."""
    history = scale.context.run.history
    before = last_compaction(history)
    answers = [each.seq for each in answers_of(history) if before is None or each.seq > before.through_seq]
    if kept.piece_chars or len(answers) < 2 or kept.through_seq != answers[-1] - 1:
        return kept
    more = _told_once(history, replace(kept, through_seq=answers[-2] - 1))
    return more if await scale.size_after(more) <= most else kept


def _candidates(history: Sequence[Recorded], kept: ContextCompacted) -> Iterator[ContextCompacted]:
    before = last_compaction(history)
    summed_up = before.through_seq if before else -1
    answers = [each.seq for each in answers_of(history) if each.seq > summed_up]
    for start in answers[-1:]:
        # Without its answer the last step is only what came of it.
        for through_seq in (start - 1, start):
            for chars in PIECE_CHARS:
                yield _told_once(history, replace(kept, through_seq=through_seq, piece_chars=chars))
    for chars in PIECE_CHARS:
        yield replace(kept, piece_chars=chars)


def _told_once(history: Sequence[Recorded], kept: ContextCompacted) -> ContextCompacted:
    """Return the compaction without the failing output where the newest steps hold it uncut."""
    newer = (each.event for each in history if each.seq > kept.through_seq)
    held = kept.piece_chars == 0 and any(isinstance(event, TestsFinished) for event in newer)
    return replace(kept, failing="") if held else kept


async def _with_code(context: ToolContext, scale: Scale, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with what fits of the code that was shown, as it is now.

    What came last comes first, then what the search brought; lines that the change shows are left out.
    """
    history = context.run.history
    newer = [each.event for each in steps_of(history) if each.seq > kept.through_seq]
    out = {*context.run.dropped, *(chunk.place for event in (kept, *newer) for chunk in chunks_shown_by(event))}
    found = [event.chunks for event in (each.event for each in history) if isinstance(event, CodeRetrieved)]
    told = [chunks_shown_by(each.event) for each in reversed(history) if not isinstance(each.event, CodeRetrieved)]
    wanted = {chunk.place: chunk for chunks in (*told, *found) for chunk in chunks if chunk.place not in out}
    left = most - await scale.size_after(kept)
    shown = change_shown([*history, Recorded(context.state.seq + 1, "", kept)])
    code: list[Chunk] = []
    repeated: list[Chunk] = []
    for chunk in list(wanted.values())[:MOST_CODE]:
        now = await as_it_is_now(context.workspace, chunk)
        pieces, cut = split_repeated(now, shown) if now is not None else ((), ())
        repeated += cut
        for piece in pieces:
            tokens = sum(await scale.count([piece.place, piece.text])) + JOIN_TOKENS
            if piece.place not in out and tokens <= left and not _holds((*kept.pinned, *code), piece):
                left -= tokens
                out.add(piece.place)
                code.append(piece)
    once = {chunk.place: chunk for chunk in repeated if chunk.place not in out}
    return replace(kept, code=tuple(code), repeated=tuple(once.values()))


async def _with_more_notes(scale: Scale, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with as much of the scratchpad as there is room for behind all else."""
    notes = notes_of(scale.context.run.history)
    if len(notes) <= kept.notes_chars:
        return kept
    size, told = await scale.count([notes, clip(notes, kept.notes_chars)])
    room = told + most - await scale.size_after(kept)
    chars = len(notes) if size <= room else len(notes) * room * 9 // (size * 10)
    return replace(kept, notes_chars=max(kept.notes_chars, chars))


def _holds(chunks: Iterable[Chunk], piece: Chunk) -> bool:
    """Return whether one of the chunks shows all lines of the piece."""
    same = (chunk for chunk in chunks if chunk.path == piece.path)
    return any(chunk.first_line <= piece.first_line and piece.last_line <= chunk.last_line for chunk in same)
