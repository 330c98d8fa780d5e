"""Blocks of the transcript for prompts, messages, compactions, and the parts of answers, also while they stream."""

import re

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    Author,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    ContextFilled,
    KnowledgeFound,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    SkillsChosen,
    UserSaid,
)
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Tone

FOLD_LINES = 6
ASIDE = frozenset({Purpose.REFLEXION, Purpose.SUMMARY})
"""Purposes whose answers become an entry of their own."""
AUTHORS = {
    Author.USER: "written by you",
    Author.MODEL: "written by the model",
    Author.WORKBENCH: "written by the workbench",
}

# Possessive, or a line of many spaces would backtrack through every split.
ACTION_LINE = re.compile(r"^Action:[ \t]*+(\S*+)[ \t]*+$", re.MULTILINE)
EDITS = frozenset({"rewrite", "write_diff"})
"""Tools whose body changes files."""
REFLEXION = "Reflexion:"


def search_blocks(event: CodeRetrieved, sought_for: str) -> list[Block]:
    """Return the blocks of a code search for the first prompt."""
    many = len(event.chunks)
    places = "\n".join(sanitize_line(chunk.place) for chunk in event.chunks)
    kept = Block("the model begins with the code as it is now, and with what fails", Tone.DIM, "Anew")
    said = Block(f"{counted_text(many, 'piece')} of code found for {sought_for}", Tone.DIM, "Search")
    return [*([kept] if event.failing else []), said, *([Block(places, Tone.DIM, fold_lines=2)] if places else [])]


def knowledge_blocks(event: KnowledgeFound) -> list[Block]:
    """Return the blocks of a search of the notes, with what could not be searched."""
    titles = "\n".join(sanitize_line(f"{note.path}  {note.symbol}", 200) for note in event.notes)
    many = len(event.notes)
    found = Block(f"{counted_text(many, 'note')} found for the task", Tone.DIM, "Knowledge")
    problem = Block(sanitize_line(event.problem, 400), Tone.DIM, "" if many else "Knowledge")
    named = (Block(titles, Tone.DIM, fold_lines=3),) if titles else ()
    return [*((found, *named) if many else ()), *((problem,) if event.problem else ())]


def skill_blocks(event: SkillsChosen) -> list[Block]:
    """Return the blocks of a choice of skills."""
    taken = ", ".join(f"{each.name} ({each.reason})" for each in event.skills) or "none"
    who = "your choice: " if event.by is Author.USER else ""
    said = Block(f"{who}{sanitize_line(taken)}", Tone.DIM, "Skills")
    left_out = "\n".join(f"left out: {each.name}: {each.reason}" for each in event.left_out)
    return [said, *([Block(sanitize(left_out), Tone.DIM, fold_lines=1)] if left_out else [])]


def prompt_blocks(event: PromptBuilt) -> list[Block]:
    """Return the blocks of a prompt."""
    parts = ", ".join(
        f"{sanitize_line(part.label, 60)}{f' {part.tokens:,}' if part.tokens else ''}" for part in event.parts
    )
    size = f"{event.tokens:,} tokens" if event.tokens else "tokens not counted"
    told = size + (f"; new: {parts}" if parts else "")
    return [Block(told, Tone.DIM, "Prompt", fold_lines=1)]


def answer_blocks(event: ModelAnswered, purpose: Purpose, by: str) -> list[Block]:
    """Return the blocks of a finished answer; `by` is the endpoint if it is not the usual one."""
    parts = split_answer(event.text)
    thought = thinking_blocks(event.reasoning)
    if parts.reflects or purpose in ASIDE:
        return thought
    head = f"step {event.step}{_cost(event.figures)}{f' · by {sanitize_line(by, 60)}' if by else ''}"
    blocks = [Block(head, Tone.TITLE, rule=True, space_before=True), *thought]
    if parts.thought:
        blocks.append(Block(sanitize(parts.thought), label="Thought"))
    if parts.action:
        blocks.append(Block(sanitize_line(parts.action), Tone.ACCENT, "Action"))
        fold = 4 if parts.action in EDITS else FOLD_LINES
        body = sanitize(parts.body.rstrip())
        blocks += [Block(body, Tone.DIM, fold_lines=fold, clips=True)] if body.strip() else []
    return blocks


def _cost(figures: AnswerFigures) -> str:
    told = (
        f"{figures.answer_tokens:,} tokens" if figures.answer_tokens else "",
        f"{figures.tokens_per_second:.0f}/s" if figures.answer_tokens and figures.tokens_per_second else "",
        dollars_text(figures.dollars) if figures.dollars > 0 else "",
    )
    return "  " + " · ".join(filter(None, told)) if any(told) else ""


def thinking_blocks(reasoning: str) -> list[Block]:
    """Return the reasoning before an answer as one line that unfolds."""
    text = sanitize(reasoning.strip())
    if not text:
        return []
    return [replace(thought_line(text), text=text, folded=f"{thought_line(text).text} · Enter shows them")]


def thought_line(reasoning: str) -> Block:
    """Return the length of the reasoning as one line, which is cheap while an answer streams."""
    return Block(f"thought for {len(reasoning):,} characters", Tone.DIM, "Thinking")


def interrupted_blocks(event: ModelInterrupted) -> list[Block]:
    """Return the blocks of an interrupted answer."""
    why = sanitize_line(event.what) or str(event.cause)
    said = Block(f"the answer is incomplete and is not executed: {why}", Tone.BAD, "Interrupted", Tone.BAD)
    partial = event.partial.strip()
    rest = [Block(sanitize(partial), Tone.DIM, fold_lines=3)] if partial else []
    return [said, *thinking_blocks(event.reasoning), *rest]


def message_blocks(event: UserSaid) -> list[Block]:
    """Return the blocks of a message from the user, and of the files and skills that go with it."""
    files = [sanitize_line(chunk.place) for chunk in event.files]
    brought = [*files, *(f"skill {sanitize_line(skill.name)}" for skill in event.skills)]
    with_it = [Block(f"with {', '.join(brought)}", Tone.DIM)] if brought else []
    return [Block(sanitize(event.text.strip()), Tone.STRONG, "You", Tone.ACCENT, space_before=True), *with_it]


def pin_blocks(event: ChunkPinned | ChunkDropped) -> list[Block]:
    """Return the blocks of a pinned or dropped piece of code."""
    if isinstance(event, ChunkDropped):
        return [Block(f"{sanitize_line(event.place)} is dropped; the next summary leaves it out", Tone.DIM, "Code")]
    word = "is pinned: summaries keep it" if event.pinned else "is no longer pinned"
    return [Block(f"{sanitize_line(event.chunk.place)} {word}", Tone.DIM, "Code")]


def full_context_blocks(event: ContextFilled) -> list[Block]:
    """Return the blocks of a full context."""
    size = f" of {event.context_tokens:,}" if event.context_tokens else ""
    if event.notes:
        said = f"the scratchpad has {event.prompt_tokens:,} tokens: a summary is to replace it"
        return [Block(said, Tone.WARN, "Scratchpad", Tone.WARN, space_before=True)]
    why = "as you asked" if event.by is Author.USER else "there is no room for the next answer"
    said = f"{event.prompt_tokens:,}{size} tokens: {why}; the older steps become a summary"
    return [Block(said, Tone.WARN, "Context", Tone.WARN, space_before=True)]


def compaction_blocks(event: ContextCompacted) -> list[Block]:
    """Return the blocks of a compaction."""
    pinned, found = len(event.pinned), len(event.code)
    kept = (
        "rules, task, notes and your messages",
        *((f"{counted_text(pinned, 'pinned piece')} of code",) if pinned else ()),
        *((f"{counted_text(found, 'found piece')} of code",) if found else ()),
        *(("the change so far",) if event.diff else ()),
        *(("the failing output",) if event.failing else ()),
    )
    return [
        Block("older steps became a summary", Tone.WARN, rule=True, space_before=True),
        Block(sanitize(event.summary.strip()), label="Summary", fold_lines=FOLD_LINES),
        Block(f"{AUTHORS[event.by]}; kept beside it: {', '.join(kept)}", Tone.DIM),
    ]


class AnswerParts(Struct, frozen=True):
    """An answer split into its parts; `action` is empty until it has arrived, `body` is what follows it."""

    thought: str
    action: str = ""
    body: str = ""
    reflects: bool = False


def split_answer(text: str) -> AnswerParts:
    """Return the parts of an answer, which may be unfinished or have no form at all."""
    lead = text.lstrip()
    if lead.startswith(REFLEXION):
        return AnswerParts(lead.removeprefix(REFLEXION).strip(), reflects=True)
    found = ACTION_LINE.search(text)
    if found is None:
        return AnswerParts(lead.removeprefix("Thought:").strip())
    thought = text[: found.start()].strip().removeprefix("Thought:").strip()
    return AnswerParts(thought, found[1], text[found.end() :].removeprefix("\n"))
