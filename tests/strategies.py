"""Values made up by hypothesis from the types of the events, for every test that must hold for all of them."""

import types
import typing
from enum import StrEnum
from functools import cache

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from agent_workbench.core.events import Event, Recorded

_ANY_CHARACTER = st.characters(exclude_categories=())


def joined(text: str) -> str:
    """Return the text with each pair of surrogates as the character it stands for, as JSON does; lone ones stay."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def texts() -> st.SearchStrategy[str]:
    """Make texts, some with control characters and lone surrogates."""
    return st.text(max_size=20) | st.text(_ANY_CHARACTER, max_size=20).map(joined)


def events() -> st.SearchStrategy[Event]:
    """Make events of every class, each field of its type."""
    return st.one_of([typing.cast(st.SearchStrategy[Event], values_of(cls)) for cls in typing.get_args(Event)])


def recorded(max_size: int = 12) -> st.SearchStrategy[tuple[Recorded, ...]]:
    """Make events as they stand in a journal, numbered from 0; no story in them."""
    return st.lists(events(), max_size=max_size).map(
        lambda all_: tuple(
            Recorded(seq, f"2026-01-02T03:04:05.{seq:06d}Z", event, f"{seq:064x}") for seq, event in enumerate(all_)
        )
    )


@cache
def values_of(hint: object) -> st.SearchStrategy[object]:
    """Make values of a type that an event's field may have."""
    if isinstance(hint, typing.NewType):
        return values_of(hint.__supertype__)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = typing.get_type_hints(hint)
        given = {field.name: values_of(hints[field.name]) for field in fields(hint)}
        return st.builds(hint, **given)
    if typing.get_origin(hint) is tuple:
        items = typing.get_args(hint)
        if items[1:] == (Ellipsis,):
            return st.lists(values_of(items[0]), max_size=3).map(tuple)
        return st.tuples(*map(values_of, items))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        # The strategies of all kinds of proposals, written out, would be too long a text for a report.
        return st.sampled_from(typing.get_args(hint)).flatmap(values_of)
    plain: dict[object, st.SearchStrategy[object]] = {
        str: texts(),
        bool: st.booleans(),
        int: st.integers(-(2**63), 2**63 - 1),
        float: st.floats(-1e300, 1e300),
        types.NoneType: st.none(),
    }
    return plain[hint]
