"""Events of knowledge: notes that a search found for a task, and notes that are offered to the user."""

from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.retrieval import Chunk


class KnowledgeFound(RecordedValue, frozen=True):
    """The notes were searched for a task's words. Each of `notes` is an excerpt; its `symbol` is the note's title.

    `problem` says why some notes, or all of them, could not be searched (empty: all were).
    """

    query: str
    notes: tuple[Chunk, ...] = ()
    problem: str = ""


class OfferedNote(RecordedValue, frozen=True):
    """A note that nobody approved yet: its name, its whole text, and where it comes from."""

    name: str
    text: str
    origin: str = ""


class NotesOffered(RecordedValue, frozen=True):
    """Notes were offered beside the steps: by a consultant, an MCP client, or from rejections in `task`."""

    notes: tuple[OfferedNote, ...]
    origin: str
    task: str = ""
