"""The last change of one label on an issue, from the events of its timeline."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from agent_workbench.adapters.forge.gitea_answers import GiteaEvent

_LABEL_TYPES = {"label", 7}
"""Spellings of the event's type: older versions sent a number."""
_ADDED = "1"


class Labelling(Struct, frozen=True):
    """A label that was added or removed: by whom and when."""

    id: int
    by: str
    at: datetime
    added: bool


def last_labelling(events: Sequence[GiteaEvent], label: str) -> Labelling | None:
    """Return the newest change of the label, None if these events have none; a ghost's or bot's has no author."""
    found = [each for each in events if each.type in _LABEL_TYPES and each.label is not None]
    named = [each for each in found if each.label is not None and each.label.name == label]
    if not named:
        return None
    newest = max(named, key=lambda each: (each.created_at, each.id))
    person = newest.user if newest.user is not None and newest.user.id > 0 else None
    return Labelling(newest.id, person.login if person is not None else "", newest.created_at, newest.body == _ADDED)
