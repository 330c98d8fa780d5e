"""Rows of a receipt: parts of the prompt and the code in them, with cached, new and re-read tokens."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import SkillLeftOut, SkillsChosen
from agent_workbench.core.intents import ChooseSkill, DropChunk, PinChunk
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.state.prompt_reads import PromptReads
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.counted_parts import PartPiece, counted_parts
from agent_workbench.views.sent_prompts import SentPrompt

LABEL_CHARS = 300
NOTE_CHARS = 200
DROPPED = "dropped, in the prompt until the next summary"
TEMPLATE = "template"
ANSWER = "answer"
# Parts that a compaction keeps: the first ones as they are, the others rebuilt.
SKILL = "skill"
BEGINNING = ("rules", "task", SKILL)
KEPT = ("map", "knowledge", "scratchpad", "pinned", "code", "user", "change", "failing")


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
