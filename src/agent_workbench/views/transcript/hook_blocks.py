"""Blocks of the transcript for hooks."""

from agent_workbench.core.events import Event, HookAnswered
from agent_workbench.core.hook_answers import HookVerdict, describe_answer
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Block, Tone

LABEL = "Hook"


def hook_blocks(event: Event) -> list[Block]:
    """Return the blocks of a hook's answer; none for one without an objection, and for any other event."""
    match event:
        case HookAnswered(point=point) if point.is_proposal and event.verdict is not HookVerdict.NONE:
            tone = Tone.BAD if event.verdict is HookVerdict.REFUSE else Tone.WARN
            return [Block(sanitize_line(describe_answer(event.hook, event.verdict, event.reason)), tone, LABEL, tone)]
        case HookAnswered(failed=True):
            said = sanitize_line(f"{event.hook} failed at {event.point}: {event.reason}")
            return [Block(said, Tone.WARN, LABEL, Tone.WARN)]
        case _:
            return []
