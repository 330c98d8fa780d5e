"""Contents of a compaction: the summary, and code, change, steps and results within a token budget."""

from asyncio import to_thread
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import ModelError, WorkspaceError
from agent_workbench.core.events import (
    ActionRejected,
    Author,
    CodeRetrieved,
    ContextCompacted,
    ContextFilled,
    InterruptCause,
    ModelInterrupted,
    PatchApplied,
    Recorded,
    StepUndone,
    TestsFinished,
)
from agent_workbench.core.fold import fold
from agent_workbench.core.model import Purpose
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.proposed_action import SummaryEstimate
from agent_workbench.core.repo.retrieval import IMPORTS, Chunk
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.file_pieces import chunks_shown_by
from agent_workbench.core.state.session_state import Phase, TaskRun
from agent_workbench.core.state.steps import proposals_of
from agent_workbench.engine.prompt.messages import build_parts, to_messages
from agent_workbench.engine.prompt.parts import notes_of
from agent_workbench.engine.prompt.prompt_size import (
    CHARS_PER_TOKEN,
    least_answer_tokens,
    summary_tokens,
    template_tokens,
)
from agent_workbench.engine.prompt.prompt_text import SUMMARY
from agent_workbench.engine.prompt.repeated_lines import added_lines, change_shown, is_as_written, split_repeated
from agent_workbench.engine.prompt.shortened_steps import replaces_earlier
from agent_workbench.engine.prompt.step_history import answers_of, last_compaction, without_summaries
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.check_runs import describe_checks

MIN_CONTEXT = 2_048
MIN_CHARS = 250
"""Pieces are not cut to less than this, and the scratchpad keeps at least as much."""

PIECE_CHARS = (0, 6_000, 2_000, 700, MIN_CHARS)
"""Limits for each piece of the newest steps, tried in turn until all fits; 0 is no limit."""
JOIN_TOKENS = 16
LEAST_ABOUT_CHARS = 1
"""Limit of the repository's map and instructions where the steps need the room: only what they are is told."""
MAX_CODE = 16
"""Number of chunks of code that are considered."""

Cut = Callable[[str, int], Awaitable[str]]


class PromptBudget(Struct, frozen=True):
    """Token limits of the next prompt, and exact or estimated token counts of texts."""

    context: ToolContext

    @property
    def purpose(self) -> Purpose:
        """Purpose of the next prompt."""
        return Purpose.REFLEXION if self.context.run.compacts_for is Phase.REFLECTING else Purpose.EXECUTOR

    @property
    def context_tokens(self) -> int:
        """Size of the context, as known when it was full."""
        filled = [each.event for each in self.context.run.history if isinstance(each.event, ContextFilled)]
        facts = self.context.state.model_for(self.purpose)
        known = (filled[-1].context_tokens if filled else 0) or (facts.context_tokens if facts else 0)
        if known or not self.context.run.compaction_asked:
            return known or MIN_CONTEXT
        # The user asked for a summary, and the server does not report its context: what was read so far fits.
        parts = build_parts(self.context.state, self.purpose)
        return max(MIN_CONTEXT, sum(len(part.text) for part in parts) // CHARS_PER_TOKEN)

    def target_tokens(self, fixed: int) -> int:
        """Return the target size: half the context, or half of the free room beside the `fixed` tokens.

        Before the first step, found code may take three quarters of the free room.
        """
        begun = bool(answers_of(self.context.run.history))
        share = (fixed + self.max_tokens) // 2 if begun else (fixed + 3 * self.max_tokens) // 4
        return min(self.max_tokens, max(self.context_tokens // 2, share))

    @property
    def max_tokens(self) -> int:
        """Maximum size of the next prompt, which leaves room for an answer and the next summary."""
        context = self.context_tokens
        return context - summary_tokens(context) - least_answer_tokens(context)

    @property
    def notes_chars(self) -> int:
        """Characters of the scratchpad that always stay; more stay if the code leaves room."""
        return max(MIN_CHARS, self.context_tokens // 16 * CHARS_PER_TOKEN)

    @property
    def about_chars(self) -> int:
        """Characters of the repository's map, and of all its instructions."""
        return max(MIN_CHARS, self.context_tokens // 8 * CHARS_PER_TOKEN)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the tokens of each text, after redaction; an estimate if the server cannot count."""
        texts = [self.context.ports.redacted(text) for text in texts]
        facts = self.context.state.model_for(self.purpose)
        if facts is None or facts.counts_tokens:
            try:
                return await self.context.ports.model.count_tokens(texts, self.purpose)
            except ModelError:
                pass  # a lost server is reported by the next question; a summary must not fail for it
        return tuple(len(text) // CHARS_PER_TOKEN + 1 for text in texts)

    async def size_after(self, compacted: ContextCompacted) -> int:
        """Return the size of the next prompt after this compaction, with the request for the next summary."""
        state = self.context.state
        parts = build_parts(fold(state, Recorded(state.seq + 1, "", compacted)), self.purpose)
        counts = await self.count([*(part.text for part in parts), SUMMARY])
        # The request and its answer are two more messages.
        return sum(counts) + ceil(template_tokens(self.context.run.history) * (len(to_messages(parts)) + 2))

    async def cut(self, text: str, tokens: int) -> str:
        """Return the text in about `tokens` tokens, the cut stated; empty if not even a few lines fit."""
        (size,) = await self.count([text])
        if size <= tokens:
            return text
        chars = len(text) * tokens * 9 // (size * 10)
        return clip(text, chars) if chars >= MIN_CHARS // 2 else ""


async def compact_context(context: ToolContext, summary: str, by: Author) -> ContextCompacted:
    """Return the compaction event: `summary` replaces the older steps; code, diff and results are the current ones."""
    budget = PromptBudget(context)
    bare = ContextCompacted(
        *(context.run.step, summary, by, context.state.seq),
        piece_chars=PIECE_CHARS[-1],
        notes_chars=budget.notes_chars,
        about_chars=budget.about_chars,
    )
    if await budget.size_after(bare) > budget.max_tokens * 3 // 4:
        bare = replace(bare, about_chars=LEAST_ABOUT_CHARS)
    # Pinned code comes first: it is cut only if it alone exceeds the room.
    room = max(0, budget.max_tokens - await budget.size_after(bare))
    pinned = await _pinned(context, budget, room * 3 // 4)
    fixed = await budget.size_after(replace(bare, pinned=pinned))
    most = budget.target_tokens(fixed)
    left = max(0, most - fixed)
    diff = await change_text(context, budget.cut, left // 3, context.run.tree)
    ended = await to_thread(_newest_checks, context.run, added_lines(diff))
    kept = replace(bare, pinned=pinned, failing=await budget.cut(ended, left // 3), diff=diff)
    kept = await _with_newest_steps(budget, kept, most)
    kept = await _with_one_more_step(budget, kept, most)
    kept = await _with_diff_before_newest_steps(context, budget, kept, left // 3)
    # The scratchpad does not count against the room for found code.
    (noted,) = await budget.count([clip(notes_of(context.run.history), kept.notes_chars)])
    most = min(budget.max_tokens, most + noted)
    kept = await _with_code(context, budget, kept, most)
    return await _with_more_notes(budget, kept, most)


async def estimate_summary(context: ToolContext, summary: str, by: Author) -> SummaryEstimate:
    """Return the size of the prompt before and after a compaction with this summary, and the steps it covers."""
    filled = [each.event.prompt_tokens for each in context.run.history if isinstance(each.event, ContextFilled)]
    compacted = await compact_context(context, summary, by)
    budget = PromptBudget(context)
    (question,) = await budget.count([SUMMARY])
    # `size_after` includes the request for the next summary, which is two more messages.
    after = await budget.size_after(compacted) - question - ceil(2 * template_tokens(context.run.history))
    return SummaryEstimate(filled[-1] if filled else 0, max(0, after), compacted.through_seq)


def _newest_checks(run: TaskRun, shown: Collection[str]) -> str:
    """Return the text of the newest run of the checks, empty without one; `shown` as in `describe_checks`.

    After an attempt that was given up it is what fails without it.
    """
    finished, changed = None, False
    for event in (each.event for each in reversed(run.history)):
        if isinstance(event, StepUndone) and event.afresh:
            purpose = CheckPurpose.AFTER_DIFF if run.kept_tree else CheckPurpose.BASELINE
            finished = TestsFinished(purpose, (run.kept_results if run.kept_tree else run.baseline) or ())
            break
        if isinstance(event, TestsFinished):
            finished = event
            break
        changed = changed or isinstance(event, PatchApplied | StepUndone)
    if finished is None:
        return ""
    if finished.purpose is CheckPurpose.BASELINE:
        return f"Before any change:\n{describe_checks(finished, root=run.workspace.path)}"
    told = describe_checks(finished, run.baseline, shown, run.workspace.path)
    return f"Before the newest change, on which they did not run yet:\n{told}" if changed else told


async def _with_diff_before_newest_steps(
    context: ToolContext, budget: PromptBudget, kept: ContextCompacted, tokens: int
) -> ContextCompacted:
    """Return the compaction with a diff that ends before the newest steps, if these show their whole change."""
    history = context.run.history
    since = [each for each in history if each.seq > kept.through_seq]
    newer, proposals = [each.event for each in since], proposals_of(since)
    applied = [event for event in newer if isinstance(event, PatchApplied)]
    whole = all(each.proposal_id in proposals and is_as_written(proposals[each.proposal_id]) for each in applied)
    undone = any(isinstance(event, StepUndone) for event in newer)
    if not applied or not whole or undone or replaces_earlier(history, kept.through_seq):
        return kept
    older = (each.event for each in reversed(history) if each.seq <= kept.through_seq)
    trees = (event.tree for event in older if isinstance(event, PatchApplied | StepUndone))
    before = next(trees, context.run.workspace.tree)
    diff = await change_text(context, budget.cut, tokens, before)
    return replace(kept, diff=diff, newest_apart=True)


async def _pinned(context: ToolContext, budget: PromptBudget, tokens: int) -> tuple[Chunk, ...]:
    """Return the pinned code as it is now; the last chunk is shortened if there is no room for all."""
    found = [await relocate_chunk(context.workspace, chunk) for chunk in context.run.pinned]
    pinned: list[Chunk] = []
    for chunk in found:
        if chunk is None:
            continue
        (size,) = await budget.count([chunk.text])
        lines = chunk.text.split("\n")
        fitting = lines if size <= tokens else lines[: len(lines) * tokens // size]
        tokens -= min(size, tokens)
        if fitting:
            last = chunk.first_line + len(fitting) - 1
            whole = chunk.whole and fitting == lines
            pinned.append(replace(chunk, text="\n".join(fitting), last_line=last, whole=whole))
    return tuple(pinned)


async def _with_newest_steps(budget: PromptBudget, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with the newest step verbatim, shortened until it fits.

    The model may not have seen the result of this step yet. Unshortened, it may use all the room.
    """
    for candidate in _candidates(budget.context.run.history, kept):
        whole = candidate.piece_chars == 0
        if await budget.size_after(candidate) <= (budget.max_tokens if whole else most):
            return candidate
    return kept


async def _with_one_more_step(budget: PromptBudget, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with one more step verbatim, if it fits easily."""
    history = budget.context.run.history
    answers = _answers_in_prompt(history)
    if kept.piece_chars or len(answers) < 2 or kept.through_seq != answers[-1] - 1:
        return kept
    more = _without_repeated_output(history, replace(kept, through_seq=answers[-2] - 1))
    return more if await budget.size_after(more) <= most else kept


def _candidates(history: Sequence[Recorded], kept: ContextCompacted) -> Iterator[ContextCompacted]:
    for start in _answers_in_prompt(history)[-1:]:
        # Without its answer only the outcome of the last step stays.
        for through_seq in (start - 1, start):
            for chars in PIECE_CHARS:
                yield _without_repeated_output(history, replace(kept, through_seq=through_seq, piece_chars=chars))
    for chars in PIECE_CHARS:
        yield replace(kept, piece_chars=chars)


def _answers_in_prompt(history: Sequence[Recorded]) -> list[int]:
    """Return the numbers of the model's answers since the last summary, and since the newest one that was given up."""
    before = last_compaction(history)
    since = before.through_seq if before else -1
    for each in history:
        match each.event:
            case (
                StepUndone(afresh=True) | ActionRejected(again=True) | ModelInterrupted(cause=InterruptCause.REPETITION)
            ):
                since = max(since, each.seq)
            case _:
                pass
    return [each.seq for each in answers_of(history) if each.seq > since]


def _without_repeated_output(history: Sequence[Recorded], kept: ContextCompacted) -> ContextCompacted:
    """Return the compaction without the failing output if the newest steps contain it in full."""
    newer = (each.event for each in history if each.seq > kept.through_seq)
    held = kept.piece_chars == 0 and any(isinstance(event, TestsFinished) for event in newer)
    return replace(kept, failing="") if held else kept


async def _with_code(context: ToolContext, budget: PromptBudget, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with as much of the code shown so far as fits, as it is now.

    The newest code comes first, then the results of the first search. Lines that the change shows are left out.
    """
    history = context.run.history
    newer = [each.event for each in without_summaries(history) if each.seq > kept.through_seq]
    out = {*context.run.dropped, *(chunk.place for event in (kept, *newer) for chunk in chunks_shown_by(event))}
    found = [event.chunks for event in (each.event for each in history) if isinstance(event, CodeRetrieved)]
    told = [chunks_shown_by(each.event) for each in reversed(history) if not isinstance(each.event, CodeRetrieved)]
    wanted = {chunk.place: chunk for chunks in (*told, *found) for chunk in chunks if chunk.place not in out}
    left = most - await budget.size_after(kept)
    change = change_shown([*history, Recorded(context.state.seq + 1, "", kept)])
    shown = _lines_by_path((*kept.pinned, *(chunk for event in newer for chunk in chunks_shown_by(event))))
    code: list[Chunk] = []
    repeated: list[Chunk] = []
    # The imports of a file come after its last chunk, as they are now.
    others = [chunk for chunk in wanted.values() if chunk.symbol != IMPORTS]
    for chunk in await context.for_prompt(others[:MAX_CODE], anew=True):
        now = await relocate_chunk(context.workspace, chunk)
        here = shown.setdefault(chunk.path, set())
        pieces, cut = split_repeated(now, change | here) if now is not None else ((), ())
        repeated += cut
        for piece in pieces:
            tokens = sum(await budget.count([piece.place, piece.text])) + JOIN_TOKENS
            if piece.place not in out and tokens <= left and not _holds((*kept.pinned, *code), piece):
                left -= tokens
                out.add(piece.place)
                code.append(piece)
                here.update(_lines_of(piece))
    once = {chunk.place: chunk for chunk in repeated if chunk.place not in out}
    return replace(kept, code=tuple(code), repeated=tuple(once.values()))


async def _with_more_notes(budget: PromptBudget, kept: ContextCompacted, most: int) -> ContextCompacted:
    """Return the compaction with as much of the scratchpad as still fits."""
    notes = notes_of(budget.context.run.history)
    if len(notes) <= kept.notes_chars:
        return kept
    size, told = await budget.count([notes, clip(notes, kept.notes_chars)])
    room = told + most - await budget.size_after(kept)
    chars = len(notes) if size <= room else len(notes) * room * 9 // (size * 10)
    return replace(kept, notes_chars=max(kept.notes_chars, chars))


def _lines_by_path(chunks: Iterable[Chunk]) -> dict[str, set[str]]:
    lines: dict[str, set[str]] = {}
    for chunk in chunks:
        lines.setdefault(chunk.path, set()).update(_lines_of(chunk))
    return lines


def _lines_of(chunk: Chunk) -> set[str]:
    return {line.strip() for line in chunk.text.split("\n")} - {""}


def _holds(chunks: Iterable[Chunk], piece: Chunk) -> bool:
    """Return True if one of the chunks shows all lines of the piece."""
    same = (chunk for chunk in chunks if chunk.path == piece.path)
    return any(chunk.first_line <= piece.first_line and piece.last_line <= chunk.last_line for chunk in same)


async def change_text(context: ToolContext, cut: Cut, tokens: int, tree: str) -> str:
    """Return the difference of `tree` to the base as a diff; if it is too long, a list of files and its newest part.

    `cut(text, tokens)` returns a text in so many tokens.
    """
    changes = await context.workspace.changes(tree)
    diff = await to_thread(render_changes, changes)
    if await cut(diff, tokens) == diff:
        return diff
    files = await to_thread(lambda: "\n".join(map(_counted, changes)))
    listed = await cut(files, tokens // 3)
    newest = await cut(_newest(context, tree), tokens // 2)
    rest = f"The newest part of it:\n{newest}" if newest else "It is too long to be shown."
    return f"{listed}\n{rest}".lstrip("\n")


def _counted(change: FileChange) -> str:
    lines = render_changes((change,)).splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    taken = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    return f"{change.path}: {added} lines added, {taken} taken away"


def _newest(context: ToolContext, tree: str) -> str:
    """Return the diff that led to `tree`, else the newest applied one."""
    standing = tuple(applied_diffs(context.run.history))
    made = next((each for each in standing if each.tree == tree), next(iter(standing), None))
    return made.proposal.diff if made is not None else ""


async def relocate_chunk(workspace: Workspace, chunk: Chunk) -> Chunk | None:
    """Return the chunk at its current position, None if its file is gone or holds nothing of it.

    A chunk that was the whole file is all of it again.
    """
    try:
        content = await workspace.read(chunk.path)
    except WorkspaceError:
        return None
    if content is None:
        return None
    lines = content.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    whole = chunk.whole and bool(content.data)
    first, last = (0, len(lines)) if whole else locate_lines(chunk.text.split("\n"), lines, chunk.first_line - 1)
    if first >= last:
        return None
    return replace(chunk, first_line=first + 1, last_line=last, text="\n".join(lines[first:last]))


def locate_lines(wanted: list[str], lines: list[str], was_at: int) -> tuple[int, int]:
    """Return the range (from 0, end exclusive) of the wanted lines, possibly with changed lines between.

    `was_at` is their former first line. It decides between equal matches, and is used if nothing matches.
    """
    if lines[was_at : was_at + len(wanted)] == wanted:
        return was_at, was_at + len(wanted)
    same = [place for place in range(len(lines)) if lines[place : place + len(wanted)] == wanted]
    if same:
        nearest = min(same, key=lambda place: abs(place - was_at))
        return nearest, nearest + len(wanted)
    blocks = SequenceMatcher(None, wanted, lines, autojunk=False).get_matching_blocks()[:-1]
    if not any(line.strip() for block in blocks for line in wanted[block.a : block.a + block.size]):
        return min(was_at, len(lines)), min(was_at + len(wanted), len(lines))
    first = max(0, blocks[0].b - blocks[0].a)
    last = min(len(lines), blocks[-1].b + len(wanted) - blocks[-1].a)
    if last - first <= 2 * len(wanted):
        return first, last
    longest = max(blocks, key=lambda block: block.size)
    first = max(0, longest.b - longest.a)
    return first, min(len(lines), first + len(wanted))
