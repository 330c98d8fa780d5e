"""Blocks of the transcript for consultations."""

from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, ConsultStatus, Event
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Tone

LABEL = "Consultant"
FOLD_LINES = 4


def consult_blocks(event: Event) -> list[Block]:
    """Return the blocks of an event of a consultation, none for any other event."""
    match event:
        case ConsultantAsked():
            about = f" about {sanitize_line(', '.join(event.paths), 200)}" if event.paths else ""
            return [Block(f"{sanitize_line(event.skill, 40)} was asked{about}", Tone.ACCENT, LABEL, space_before=True)]
        case ConsultantAnswered(status=ConsultStatus.OK):
            return [Block(sanitize(event.text.strip()), Tone.PLAIN, "Advice", fold_lines=FOLD_LINES)]
        case ConsultantAnswered():
            reason = sanitize(event.reason, limit_chars=4000)
            return [Block(f"no answer ({event.status}): {reason}", Tone.WARN, "Advice", Tone.WARN)]
        case _:
            return []
