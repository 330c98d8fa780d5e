"""Playbooks among the files of a repository: their names, services and plays. Nothing in them is evaluated."""

import re
from pathlib import PurePosixPath

from msgspec import Struct

MAX_BYTES = 262_144
"""Size of a file that is read as a playbook."""
MOST_SERVICES = 20
MOST_PLAYS = 50
_SUFFIXES = frozenset({".yml", ".yaml"})
# Folders of a role or an inventory, which hold no playbooks.
_PARTS = frozenset({"tasks", "handlers", "defaults", "vars", "meta", "templates", "files", "group_vars", "host_vars"})
_SERVICE = re.compile(r"^[ \t]*#[ \t]*(?:agent|chiffon):service=(\S{1,100})[ \t]*\r?$", re.MULTILINE)
_PLAY = re.compile(
    r"^(?:-[ ]+|[ ]{2,4})(?:hosts|import_playbook|ansible\.builtin\.import_playbook):(?:[ \t]|$)", re.MULTILINE
)
_ITEM = re.compile(r"^-[ ]", re.MULTILINE)
_NAME = re.compile(r"^(?:-[ ]+|[ ]{2,4})name:[ \t]+(\S.{0,199})$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#[ \t]*([^!\s].{0,299})$", re.MULTILINE)
_HEAD_LINES = 40


class Playbook(Struct, frozen=True):
    """A playbook: its path, the services that its comments name, the names of its plays, and its first comments."""

    path: str
    services: tuple[str, ...] = ()
    plays: tuple[str, ...] = ()
    about: str = ""

    @property
    def name(self) -> str:
        """Name of the file without its suffix."""
        return PurePosixPath(self.path).stem

    @property
    def text(self) -> str:
        """The words by which it is found."""
        return "\n".join((self.path, *self.services, *self.plays, self.about))


class PlaybookSearch(Struct, frozen=True):
    """Answer of a search: the one playbook that fits and why, else the `nearest` ones with the similarity of each.

    A similarity is that of meaning, None where no vectors are configured.
    """

    found: Playbook | None = None
    reason: str = ""
    nearest: tuple[tuple[Playbook, float | None], ...] = ()


def may_be_playbook(path: str) -> bool:
    """Return True if a file with this path may hold a playbook."""
    pure = PurePosixPath(path)
    hidden = any(part.startswith(".") for part in pure.parts)
    return pure.suffix.lower() in _SUFFIXES and not hidden and not _PARTS.intersection(pure.parts[:-1])


def read_playbook(path: str, text: str) -> Playbook | None:
    """Return the playbook in a file, None if it holds none."""
    if not _ITEM.search(text) or not _PLAY.search(text):
        return None
    head = "\n".join(text.split("\n", _HEAD_LINES)[:_HEAD_LINES])
    services = tuple(dict.fromkeys(_SERVICE.findall(text)))[:MOST_SERVICES]
    comments = [line for line in _COMMENT.findall(head) if ":service=" not in line]
    plays = tuple(name.strip().strip("\"'") for name in _NAME.findall(text)[:MOST_PLAYS])
    return Playbook(path, services, plays, "\n".join(comments))
