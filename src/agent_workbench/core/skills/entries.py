"""Entries of the skills catalogue: what is known of a skill without its text."""

import re
from enum import StrEnum

from msgspec import Struct

FILE = "SKILL.md"
INSTALLED = frozenset({"venv", ".venv", "__pycache__"})
"""Folders that tools put into a skill, often with thousands of files."""
ENVIRONMENTS = ("venv", ".venv")
"""Names of an environment in a skill's folder; the first with `ENVIRONMENT_MARK` is the one that scripts run in."""
ENVIRONMENT_MARK = "pyvenv.cfg"
_COMPILED = re.compile(r".+\.[a-z]+-[0-9]+(?:\.opt-[a-z0-9]+)?\.pyc", re.DOTALL)


def is_compiled(folder: str, name: str) -> bool:
    """Return True for a compiled file as Python writes it into `__pycache__`: scripts with a repo's skill read none.

    All else in such a folder is content like any other: what imports it runs it.
    """
    return folder == "__pycache__" and _COMPILED.fullmatch(name) is not None


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
