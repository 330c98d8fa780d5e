"""Use of notes, derived from journals: which tasks had a note in their prompt, and how these ended."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from agent_workbench.core.events import ChunkDropped, KnowledgeFound, Recorded, TaskFinished, TaskStarted
from agent_workbench.core.plan import TaskStatus

USED, DROPPED = "used", "dropped"


class NoteUsage(Struct, frozen=True):
    """Number of tasks that had a note in their prompt, and of those that ended `done`, `failed` or not yet.

    The user dropped it in `dropped` further tasks.
    """

    used: int = 0
    done: int = 0
    failed: int = 0
    dropped: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "NoteUsage":
        """Return the usage with these counts."""
        return cls(counts[USED], counts[TaskStatus.DONE], counts[TaskStatus.FAILED], counts[DROPPED])

    @property
    def helped(self) -> bool:
        """True if a task that had the note in its prompt was done."""
        return self.done > 0


def usage_of(events: Iterable[Recorded]) -> dict[str, Counter[str]]:
    """Return the counts of each note in one session, by the note's path."""
    counts: dict[str, Counter[str]] = {}
    now: dict[str, str] = {}
    dropped: set[str] = set()

    def end(status: str) -> None:
        for place, path in now.items():
            words = (DROPPED,) if place in dropped else (USED, status)
            counts.setdefault(path, Counter()).update(filter(None, words))
        now.clear()
        dropped.clear()

    for event in (each.event for each in events):
        match event:
            case TaskStarted():
                end("")
            case KnowledgeFound(notes=notes):
                now.update((note.place, note.path) for note in notes)
            case ChunkDropped(place=place) if place in now:
                dropped.add(place)
            case TaskFinished(status=status):
                end(str(status))
            case _:
                pass
    end("")
    return counts
