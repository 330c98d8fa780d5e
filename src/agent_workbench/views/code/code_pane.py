"""The code pane and the results of a code search: pieces of code with their reasons, cost and state."""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import CodeRetrieved, SkillLeftOut
from agent_workbench.core.intents import ChooseSkill, DropChunk, PinChunk
from agent_workbench.core.intents.outcomes import CodeFound
from agent_workbench.core.repo.retrieval import Chunk, IndexStatus
from agent_workbench.core.skills.entries import SkillEntry
from agent_workbench.core.state.growing_tuple import FoldSnapshots
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Tone
from agent_workbench.views.code.reasons import Reason, index_line, matched_words, reasons_of
from agent_workbench.views.code.shown_code import Cost, ShownCode, shown_code_snapshots

PREVIEW_CHARS = 20_000
REASON_CHARS = 300
MAX_SEARCHED = 30
"""Maximum number of rows from the model's own searches; the newest are shown."""


class CodeState(Enum):
    """State of a piece: its glyph (hollow: not in the prompt), the tone of its name, and a word."""

    IN_PROMPT = ("●", Tone.STRONG, "")
    PINNED = ("◆", Tone.STRONG, "pinned")
    DROPPED = ("✗", Tone.GONE, "dropped, in the prompt until the next summary")
    LEFT_OUT = ("○", Tone.GONE, "dropped, not in the prompt")
    SUMMED_UP = ("○", Tone.DIM, "no longer in the prompt: a summary replaced it")
    OFFERED = ("○", Tone.PLAIN, "")

    @property
    def in_prompt(self) -> bool:
        """True if the model sees it."""
        return self in (CodeState.IN_PROMPT, CodeState.PINNED, CodeState.DROPPED)


class CodeRow(Struct, frozen=True):
    """One piece of code: its state, cost and reasons, and its text from line `first_line` on.

    `tokens` begin with `~` if they are estimated. `number` is its rank in the search result, empty for others. `words`
    are the matched words of the query. `remark` is a further remark; `context` is that of the piece. `skill` is the
    name of a skill, whose row has no code.
    """

    key: str
    number: str
    place: str
    path: str
    symbol: str
    first_line: int
    preview: str
    tokens: str
    score: str
    reasons: tuple[Reason, ...]
    words: tuple[str, ...]
    state: CodeState = CodeState.IN_PROMPT
    remark: str = ""
    context: str = ""
    skill: str = ""

    @property
    def pin(self) -> PinChunk | ChooseSkill:
        """The intent of the key that pins: it pins or unpins a piece, or takes a skill into the prompt or back."""
        pins = self.state is not CodeState.PINNED
        return ChooseSkill(self.skill, pins) if self.skill else PinChunk(self.place, pins)

    @property
    def drop(self) -> DropChunk | ChooseSkill:
        """The intent of the key that drops."""
        return ChooseSkill(self.skill, chosen=False) if self.skill else DropChunk(self.place)


class CodeView(Struct, frozen=True):
    """Rows: skills, pieces the user added, notes, results of the first search, then those of the model's own searches.

    Pinning does not move a row. `progress` is the progress of the index in a few words, or empty. `task_running`: a
    task is running that would read an added piece.
    """

    title: str
    rows: tuple[CodeRow, ...]
    empty: str
    progress: str = ""
    task_running: bool = False


def view_code(
    state: SessionState, index: IndexStatus | None = None, trail: FoldSnapshots[ShownCode] | None = None
) -> CodeView:
    """Return the code pane of the current run, with the progress of the `index`.

    `trail` holds the snapshots of earlier calls, which this one continues.
    """
    run = state.run
    progress = index_line(index) if index is not None else ""
    so_far = (shown_code_snapshots() if trail is None else trail).at(run.history) if run is not None else ShownCode()
    pieces, skills = tuple(_pieces(so_far)), skill_rows(so_far)
    if run is None or not (pieces or skills):
        return CodeView("Retrieved code", (), _nothing(state), progress, state.unfinished)
    rows = []
    for number, chunk, came in pieces:
        row = replace(view_piece(chunk, number), state=_state(run, chunk.place, so_far.in_prompt))
        cost = so_far.costs.get(chunk.place, Cost(chunk.tokens, counted=False))
        remark = " · ".join(filter(None, (row.state.value[2], came)))
        rows.append((replace(row, tokens=cost.text, remark=remark), cost))
    there = sum(row.state.in_prompt for row in skills)
    title = " · ".join(filter(None, (_title(rows), counted_text(there, "skill") if there else "")))
    return CodeView(title, (*skills, *(row for row, _ in rows)), "", progress, state.unfinished)


def view_piece(chunk: Chunk, number: str = "") -> CodeRow:
    """Return the row of an offered piece, which is not in the prompt yet."""
    return CodeRow(
        key=f"{number}:{chunk.place}",
        number=number,
        place=chunk.place,
        path=chunk.path,
        symbol=sanitize_line(chunk.symbol, 120),
        first_line=chunk.first_line,
        preview=sanitize(chunk.text.rstrip("\n"), limit_chars=PREVIEW_CHARS),
        context=sanitize(chunk.context, limit_chars=PREVIEW_CHARS),
        tokens=Cost(chunk.tokens, counted=False).text,
        score=f"{chunk.score:.2f}" if chunk.score else "",
        reasons=reasons_of(chunk),
        words=matched_words(chunk),
        state=CodeState.OFFERED,
    )


def _pieces(so_far: ShownCode) -> Iterator[tuple[str, Chunk, str]]:
    """Yield the distinct pieces, each with its rank in the search result and its origin."""
    chunks = so_far.found.chunks if so_far.found is not None else ()
    numbered = {chunk.place for chunk in (*chunks, *so_far.notes)}
    for chunk in so_far.added.values():
        if chunk.place not in numbered:
            yield "", chunk, ""
    for note in so_far.notes:
        yield "", note, "note"
    for number, chunk in enumerate(chunks, 1):
        yield str(number), chunk, ""
    for chunk in list(so_far.searched.values())[-MAX_SEARCHED:]:
        if chunk.place not in numbered | so_far.added.keys():
            yield "", chunk, "found by the model"


def skill_rows(so_far: ShownCode) -> tuple[CodeRow, ...]:
    """Return a row for each skill in the prompt, then for each that is left out."""
    choice = so_far.skills
    if choice is None:
        return ()
    taken = (
        replace(
            _skill_row(skill.name, Cost(skill.tokens, choice.counted)),
            preview=sanitize(skill.text, limit_chars=PREVIEW_CHARS),
            state=CodeState.IN_PROMPT,
            remark=sanitize_line(skill.reason, REASON_CHARS),
        )
        for skill in choice.skills
    )
    left_out = (
        _left_out_row(out, Cost(out.tokens, choice.counted), sent=out.name in so_far.sent_skills)
        for out in choice.left_out
    )
    return (*taken, *left_out)


def _left_out_row(skill: SkillLeftOut, cost: Cost, *, sent: bool) -> CodeRow:
    state = CodeState.DROPPED if sent else CodeState.OFFERED
    remark = state.value[2] or f"left out: {sanitize_line(skill.reason, REASON_CHARS)}"
    return replace(_skill_row(skill.name, cost), state=state, remark=remark)


def _skill_row(name: str, cost: Cost) -> CodeRow:
    name = sanitize_line(name, 100)
    place = f"skill {name}"
    return CodeRow(f"skill:{name}", "", place, f"{name}.md", "", 1, "", cost.text, "", (), (), skill=name)


def _state(run: TaskRun, place: str, there: frozenset[str]) -> CodeState:
    if any(chunk.place == place for chunk in run.pinned):
        return CodeState.PINNED
    if place in run.dropped:
        return CodeState.DROPPED if place in there else CodeState.LEFT_OUT
    return CodeState.IN_PROMPT if place in there else CodeState.SUMMED_UP


def _title(rows: list[tuple[CodeRow, Cost]]) -> str:
    there = [cost for row, cost in rows if row.state.in_prompt]
    tokens = sum(cost.tokens for cost in there)
    about = "" if all(cost.counted for cost in there) else "~"
    pinned = sum(row.state is CodeState.PINNED for row, _ in rows)
    out = len(rows) - len(there)
    told = (
        f"Retrieved code · {counted_text(len(rows), 'piece')}",
        f"{out} not in the prompt" if out else "",
        f"{about}{tokens:,} tokens" if tokens else "",
        f"{pinned} pinned" if pinned else "",
    )
    return " · ".join(filter(None, told))


def _nothing(state: SessionState) -> str:
    run = state.run
    found = [each.event for each in run.history if isinstance(each.event, CodeRetrieved)] if run is not None else []
    if found:
        return f"the search for “{sanitize_line(found[-1].query, 100)}” found nothing"
    if run is not None and run.definition.edits:
        return "the task names its edits, so no code is searched"
    if run is not None and run.phase in (Phase.BASELINE, Phase.RETRIEVING):
        return "code for the task is searched after the first checks"
    return "the code in the prompt appears here once a task runs"


def view_search_results(state: SessionState, found: CodeFound) -> tuple[CodeRow, ...]:
    """Return a row for each skill that was found, then for each piece of code, best first."""
    run = state.run
    taken = {each.name for each in run.skills.skills} if run is not None and run.skills is not None else set()
    pinned = {chunk.place for chunk in run.pinned} if run is not None else set()
    there = shown_code_snapshots().at(run.history).in_prompt if run is not None else frozenset()
    rows = [_found_skill(each, taken=each.name in taken) for each in found.skills]
    for number, chunk in enumerate(found.chunks, 1):
        state_now, remark = CodeState.OFFERED, ""
        if chunk.place in pinned:
            state_now, remark = CodeState.PINNED, "pinned"
        elif chunk.place in there:
            state_now, remark = CodeState.IN_PROMPT, "in the prompt already"
        rows.append(replace(view_piece(chunk, str(number)), state=state_now, remark=remark))
    return tuple(rows)


def _found_skill(skill: SkillEntry, *, taken: bool) -> CodeRow:
    row = _skill_row(skill.name, Cost(skill.tokens, counted=False))
    state = CodeState.PINNED if taken else CodeState.OFFERED
    return replace(row, preview=sanitize(skill.description, limit_chars=PREVIEW_CHARS), state=state, remark="skill")
