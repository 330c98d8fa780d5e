"""Values of the notes that outlive a task: a note, a search hit, and the form of a note's name."""

import re

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.repo.retrieval import Signal

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
PUT_ASIDE = "it is put aside for a person, who decides about it after the task; go on without it"
"""Reason of the decision about a note of an unattended task, which is offered when the task is over."""
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


def check_note_name(name: str) -> None:
    """Raise `UsageError` for a name that cannot be a file's name on every disk."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of a note",
            advice=f"use at most {MAX_NAME_CHARS} lower-case letters and digits, joined by '.', '_' or '-'",
        )
