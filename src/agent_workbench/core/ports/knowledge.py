"""Protocol of the notes that outlive a task. `tests/contracts` holds every implementation to it."""

import re
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.repo.retrieval import Signal

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
MAX_NAME_CHARS = 80


class KnowledgeNote(Struct, frozen=True):
    """A markdown note: `name` has no folder and no suffix; `problem` says why its text could not be read."""

    name: str
    text: str = ""
    problem: str = ""


class KnowledgeHit(Struct, frozen=True):
    """A note that fits a search. Scores compare within one search only; `signals` are their parts, largest first."""

    note: KnowledgeNote
    score: float
    signals: tuple[Signal, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the search that the note contains, best first."""
        return tuple(dict.fromkeys(word for signal in self.signals for word in signal.words))


class Knowledge(Protocol):
    """Notes that outlive a task. Any method may raise `StorageError`; a missing folder is an empty one."""

    async def notes(self) -> tuple[KnowledgeNote, ...]:
        """Return all notes by name, those that cannot be read with their `problem`."""

    async def has_notes(self) -> bool:
        """Return True if there is a note that can be searched."""

    async def read(self, name: str) -> KnowledgeNote | None:
        """Return the note with this name, with its `problem` if it cannot be read; None if there is none."""

    async def search(self, words: str, limit: int) -> tuple[KnowledgeHit, ...]:
        """Return at most `limit` notes that fit the words, best first and then by name; none if nothing fits."""

    async def problem(self) -> str:
        """Return in one sentence why some notes, or all, are not searched; empty if all are."""

    async def write(self, note: KnowledgeNote, before: str | None) -> None:
        """Put the note's text in place of `before` (None: no such note), whole and durably.

        Raises `StorageError` and changes nothing if something else stands there, `UsageError` for a bad name.
        """

    async def close(self) -> None:
        """Release what the search holds."""


def check_note_name(name: str) -> None:
    """Raise `UsageError` for a name that cannot be a file's name on every disk."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of a note",
            advice=f"use at most {MAX_NAME_CHARS} lower-case letters and digits, joined by '.', '_' or '-'",
        )
