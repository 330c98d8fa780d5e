"""Tables of the journal's events, and of the values in them."""

import typing

from msgspec import Struct

from agent_workbench.core import events as journal
from agent_workbench.core.events.codec import RECORDED_FIELDS, REQUIRED_FIELDS, event_classes, kind_of
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.proposed_action import ProposedAction
from agent_workbench.core.settings import Permission
from docgen.markdown import code, plain, table
from docgen.structs import doc_text, inner_structs, section_name, struct_fields, struct_table, type_text

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
    found = {section_name(each): each for cls in event_classes().values() for each in inner_structs(cls)}
    return "\n\n".join(_proposals() if name == "Proposal" else _section(name, found[name]) for name in sorted(found))


def _proposals() -> str:
    """Return the section of the kinds of proposals: each is recorded with the fields of all."""
    known = {kind: {each.name: each for each in struct_fields(cls)} for kind, cls in KINDS.items()}
    texts = [f"- `{kind}`: {_kind_text(cls)}" for kind, cls in KINDS.items()]
    rows = []
    for name in RECORDED_FIELDS:
        own = [kind for kind, named in known.items() if code(name) in named]
        if own:
            found = known[own[0]][code(name)]
            default = "" if name in REQUIRED_FIELDS else found.default
            rows.append((found.name, found.type, default, "" if len(own) == len(KINDS) else ", ".join(map(code, own))))
        else:
            rows.append((code(name), type_text(Permission), "", ""))
    return "\n\n".join(
        (
            "### Proposal",
            plain(doc_text(ProposedAction)),
            "A field that a kind does not have holds its default. The kinds are:",
            plain("\n".join(texts)),
            table(("field", "type", "default", "kinds"), rows),
        )
    )


def _kind_text(cls: type[Struct]) -> str:
    """Return what a kind is, and the meaning of its fields, also of those that it shares with another kind."""
    shared = (each for each in cls.__mro__[1:] if issubclass(each, ProposedAction) and each is not ProposedAction)
    texts = (doc_text(cls), *(text for each in shared for text in doc_text(each).split("\n\n")[1:]))
    return " ".join(" ".join(texts).split())


def _section(name: str, cls: type[Struct]) -> str:
    return "\n\n".join(filter(None, (f"### {name}", plain(doc_text(cls)), struct_table(cls))))
