"""Tools and resources of the knowledge: notes are searched and read; a new one waits for a person."""

from functools import partial

from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.mcp.resources import MARKDOWN, SCHEME, Kind, Listed
from agent_workbench.mcp.served_tool import (
    Arguments,
    JsonObject,
    ServedTool,
    name_field,
    number_field,
    schema_of,
    text_field,
)

LIMIT, MOST_NOTES = 3, 50
MOST_LISTED = 200
NOTES = "knowledge"
ORIGIN = "an MCP client"


def knowledge_tools(invocation: Invocation) -> tuple[ServedTool, ...]:
    """Return the tools."""
    query = {"query": text_field("words to search for")}
    limit = {"limit": number_field(f"maximum number of notes ({LIMIT})", MOST_NOTES)}
    optional = {
        "filename": name_field("the note's file name; without one it gets a date"),
        "type": name_field("kind of note, such as concept"),
        "domain": name_field("what it is about, such as software"),
    }
    return (
        ServedTool(
            "brain_query",
            "Search the knowledge of this repository: notes that earlier work left, with an excerpt of each.",
            schema_of(query, limit),
            partial(_query, invocation),
        ),
        ServedTool(
            "brain_write",
            "Offer a note for the knowledge of this repository. It waits in the inbox until a person takes it, unless "
            "the repository's approvals let it in.",
            schema_of({"content": text_field("the note in Markdown")}, optional),
            partial(_write, invocation),
            reads=False,
        ),
    )


async def _query(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.subjects.knowledge.calls import search_knowledge
    from agent_workbench.views.reports.json_documents import note_document

    found = await search_knowledge(invocation, arguments.text("query"), arguments.number("limit", LIMIT))
    told: JsonObject = {"results": [note_document(note) for note in found.notes]}
    return {**told, "warning": sanitize_line(found.problem)} if found.problem else told


async def _write(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.subjects.knowledge.calls import note_of, park_notes

    kind, domain = arguments.text("type"), arguments.text("domain")
    note = note_of(arguments.text("content"), arguments.text("filename"), type=kind, domain=domain, origin=ORIGIN)
    parked = await park_notes(invocation, (note,), f"brain_write of {ORIGIN}")
    return {
        "path": parked.paths[0],
        "written": parked.written,
        "waits_in": None if parked.written else parked.session,
    }


def note_resources(invocation: Invocation) -> Kind:
    """Return the resources of the notes."""
    return Kind(
        NOTES,
        "name",
        "a note of the knowledge, whole",
        MARKDOWN,
        partial(_listed, invocation),
        partial(_note, invocation),
    )


async def _listed(invocation: Invocation) -> tuple[Listed, ...]:
    from agent_workbench.core.errors import StorageError
    from agent_workbench.subjects.knowledge.calls import list_notes

    try:
        notes = [each for each in await list_notes(invocation) if not each.problem]
    except StorageError:
        return ()  # what cannot be read keeps nothing else from the list
    return tuple(
        Listed(f"{SCHEME}{NOTES}/{each.name}", each.name, sanitize_line(each.title or each.path), MARKDOWN)
        for each in notes[:MOST_LISTED]
    )


async def _note(invocation: Invocation, name: str) -> str:
    from agent_workbench.subjects.knowledge.calls import read_note

    return (await read_note(invocation, name)).text
