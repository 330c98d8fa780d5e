"""Issue that a task comes from, as its `source` names it."""

import re

from msgspec import Struct

FORGES = ("gitea", "forgejo", "github")
FORMS = "gitea:owner/repo#7 or gitea:project:7"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?"
_NUMBER = r"[1-9]\d{0,8}"
_WITH_OWNER = re.compile(rf"({'|'.join(FORGES)}):({_NAME}/{_NAME})#({_NUMBER})", re.ASCII)
_PROJECT = re.compile(rf"({'|'.join(FORGES)}):({_NAME}):({_NUMBER})", re.ASCII)


class IssueSource(Struct, frozen=True):
    """An issue of a forge. `repo` is `owner/repo`, or a project's name alone where the settings know its repository."""

    forge: str
    repo: str
    number: int


def names_forge(source: str) -> bool:
    """Return True if a source begins as one of an issue does."""
    return source.partition(":")[0] in FORGES and ":" in source


def read_source(source: str) -> IssueSource | None:
    """Return the issue that a source names, None if it is any other text."""
    found = _WITH_OWNER.fullmatch(source) or _PROJECT.fullmatch(source)
    return None if found is None else IssueSource(found[1], found[2], int(found[3]))
