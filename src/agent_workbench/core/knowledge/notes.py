"""Values of the notes that outlive a task: a note, a search hit, and the name of a note's file."""

import re

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.repo.retrieval import Signal

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
PUT_ASIDE = "it is put aside for a person, who decides about it after the task; go on without it"
"""Reason of the decision about a note of an unattended task, which is offered when the task is over."""
MAX_NAME_CHARS = 80

FOLDER = "knowledge"
SUFFIX = ".md"
_SEPARATORS = re.compile(r"[^a-z0-9._]+")
_RUNS = re.compile(r"([._-])[._-]+")


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


def knowledge_folder(memory: str) -> str:
    """Return the folder of the notes, relative to the repo, in the folder `memory`."""
    return f"{memory.strip('/')}/{FOLDER}"


def note_path(memory: str, name: str) -> str:
    """Return the path of a note's file, relative to the repo."""
    return f"{knowledge_folder(memory)}/{name}{SUFFIX}"


def name_in_path(path: str) -> str:
    """Return the name of the note whose file has this path."""
    return path.rpartition("/")[2].removesuffix(SUFFIX)


def note_name(said: str) -> str:
    """Return the name of a note for a title or a file name: its base name, in lower case, joined by `-`.

    Raises `UsageError` if no name is left.
    """
    base = said.strip().replace("\\", "/").rpartition("/")[2].removesuffix(SUFFIX)
    plain = _RUNS.sub(r"\1", _SEPARATORS.sub("-", base.lower())).strip("._-")
    name = plain[:MAX_NAME_CHARS].strip("._-")
    check_note_name(name)
    return name


def auto_name(time: str) -> str:
    """Return the name of a note that nobody named: `YYYY-MM-DD-HHMMSS-auto` of a time in ISO 8601, UTC."""
    return f"{time[:10]}-{''.join(letter for letter in time[11:19] if letter.isdigit())}-auto"
