"""Blocks of the transcript for a plan that the model is asked for."""

from agent_workbench.core.events import Event, PlanAnswered, PlanAsked, PlanPrompted, PlanRejected, PlanSurveyed
from agent_workbench.core.live import Streaming
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.transcript.model_blocks import thinking_blocks

FOLD_LINES = 10


def plan_blocks(event: Event) -> list[Block]:
    """Return the blocks of an event of the planning, none for any other event."""
    match event:
        case PlanAsked():
            what = f"a check for {event.check_for}" if event.check_for else "a plan"
            title = Block(f"{what} of the model", Tone.TITLE, rule=True, space_before=True)
            return [title, Block(sanitize(event.goal, limit_chars=4000), label="Goal")]
        case PlanSurveyed():
            return _survey_blocks(event)
        case PlanPrompted():
            return [Block(f"{event.tokens:,} tokens" if event.tokens else "tokens not counted", Tone.DIM, "Prompt")]
        case PlanAnswered():
            cut = [Block(sanitize_line(event.stopped), Tone.WARN, "Stopped", Tone.WARN)] if event.stopped else []
            said = Block(sanitize(event.text.strip()), Tone.DIM, "Answer", fold_lines=FOLD_LINES)
            return [*thinking_blocks(event.reasoning), *([said] if event.text.strip() else []), *cut]
        case PlanRejected():
            return [Block(sanitize(event.reason, limit_chars=4000), Tone.BAD, "Invalid", Tone.BAD)]
        case _:
            return []


def proposed_plan_blocks(proposal: Proposal) -> list[Block]:
    """Return the block of a proposed plan."""
    many = len(proposal.plan.tasks) if proposal.plan is not None else 0
    return [Block(counted_text(many, "task"), Tone.ACCENT, "Plan", space_before=True)]


def streamed_plan_blocks(streaming: Streaming) -> list[Block]:
    """Return the blocks of a plan that is being written."""
    thought = thinking_blocks(streaming.thought)
    return [*thought, Block(sanitize(streaming.text) + "▌", Tone.PLAIN, "Plan", space_before=True)]


def _survey_blocks(event: PlanSurveyed) -> list[Block]:
    found = (*event.code, *event.tests)
    counts = f"{counted_text(len(event.code), 'piece')} of code, {counted_text(len(event.tests), 'piece')} of tests"
    files = counted_text(len(event.files) + event.more_files, "file")
    places = "\n".join(sanitize_line(chunk.place) for chunk in found)
    said = Block(f"{counts}, {files}", Tone.DIM, "Search")
    return [said, *([Block(places, Tone.DIM, fold_lines=2)] if places else [])]
