"""Tables of the journal's events, and of the values in them."""

import typing

from msgspec import Struct

from agent_workbench.core import events as journal
from agent_workbench.core.events.codec import event_classes, kind_of
from docgen.markdown import plain
from docgen.structs import doc_text, inner_structs, struct_table

GROUPS = (
    ("Session", journal.SessionEvent),
    ("Plan", journal.PlanEvent),
    ("Steps", journal.StepEvent),
    ("Gate", journal.GateEvent),
    ("Work", journal.WorkEvent),
    ("Consultants", journal.ConsultEvent),
    ("Hooks", journal.HookEvent),
    ("Chat", journal.ChatEvent),
)


def events() -> str:
    """Return a section for each group of events."""
    sections = []
    for title, group in GROUPS:
        sections.append(f"## {title}")
        sections += [_section(kind_of(cls), cls) for cls in typing.get_args(group)]
    return "\n\n".join(sections)


def event_values() -> str:
    """Return a section for each kind of value in an event."""
    found = {each.__name__: each for cls in event_classes().values() for each in inner_structs(cls)}
    return "\n\n".join(_section(name, found[name]) for name in sorted(found))


def _section(name: str, cls: type[Struct]) -> str:
    return "\n\n".join(filter(None, (f"### {name}", plain(doc_text(cls)), struct_table(cls))))
