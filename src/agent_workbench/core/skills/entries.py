"""Entries of the skills catalogue: what is known of a skill without its text."""

from enum import StrEnum

from msgspec import Struct

FILE = "SKILL.md"
INSTALLED = frozenset({"venv", ".venv", "__pycache__"})
"""Folders that tools put into a skill, often with thousands of files; no part of the skill's own content."""


class SkillOrigin(StrEnum):
    """Owner of a folder of skills. Of several skills with one name that of the first origin counts."""

    REPO = "repo"
    USER = "user"
    PACKAGE = "package"


class SkillEntry(Struct, frozen=True):
    """A skill in the catalogue.

    `tokens` is the size of its text: declared by the skill, else estimated. `role` is set for skills that only one part
    of the workbench uses, such as consultants; no task chooses these. `has_files`: there is more in its folder than its
    `SKILL.md` and what tools put there. `problems` begin with file and line; a skill that
    is not `usable` has at least one.
    """

    name: str
    description: str
    origin: SkillOrigin
    folder: str
    domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    role: str = ""
    tokens: int = 0
    has_files: bool = False
    problems: tuple[str, ...] = ()
    usable: bool = True


class SkillPlace(Struct, frozen=True):
    """A folder that was searched for skills: how many it contains, or the `problem` such as "missing"."""

    folder: str
    origin: SkillOrigin
    skills: int = 0
    problem: str = ""


class SkillHit(Struct, frozen=True):
    """A skill that fits a search, with the words by which it was found, best first."""

    name: str
    score: float
    words: tuple[str, ...] = ()
