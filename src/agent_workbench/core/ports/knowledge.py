"""Protocol of the notes that outlive a task. `tests/contracts` holds every implementation to it."""

import re
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import UsageError

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
MAX_NAME_CHARS = 80


class KnowledgeNote(Struct, frozen=True):
    """A markdown note: `name` has no folder and no suffix; `problem` says why its text could not be read."""

    name: str
    text: str = ""
    problem: str = ""


class KnowledgeHit(Struct, frozen=True):
    """A note that fits a search. Scores compare within one search only; `reasons` say what they are made of."""

    note: KnowledgeNote
    score: float
    reasons: tuple[str, ...] = ()


class Knowledge(Protocol):
    """Notes that outlive a task. Any method may raise `StorageError`; a missing folder is an empty one."""

    async def notes(self) -> tuple[KnowledgeNote, ...]:
        """Return all notes by name, those that cannot be read with their `problem`."""

    async def search(self, words: str, limit: int) -> tuple[KnowledgeHit, ...]:
        """Return at most `limit` notes that fit the words, best first and then by name; none if nothing fits."""

    async def write(self, note: KnowledgeNote, before: str | None) -> None:
        """Put the note's text in place of `before` (None: no such note), whole and durably.

        Raises `StorageError` and changes nothing if something else stands there, `UsageError` for a bad name.
        """


def check_note_name(name: str) -> None:
    """Raise `UsageError` for a name that cannot be a file's name on every disk."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of a note",
            advice=f"use at most {MAX_NAME_CHARS} lower-case letters and digits, joined by '.', '_' or '-'",
        )
