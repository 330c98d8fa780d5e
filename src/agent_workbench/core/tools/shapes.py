"""Shapes of JSON values: the part of JSON Schema that a grammar can hold an answer to."""

from typing import TypeAlias

from msgspec import Struct


class AnyShape(Struct, frozen=True):
    """Any JSON value."""


class ConstShape(Struct, frozen=True):
    """One of some values, each as JSON on one line."""

    values: tuple[str, ...]


class StringShape(Struct, frozen=True):
    """Text of so many characters."""

    min_length: int
    max_length: int


class IntegerShape(Struct, frozen=True):
    """A whole number within inclusive bounds."""

    minimum: int
    maximum: int


class NumberShape(Struct, frozen=True):
    """A number: a whole one within inclusive bounds, or one between two neighbouring whole numbers.

    `fractions` are the least and the greatest `n` of the numbers between `n` and `n + 1`, `negative_fractions` those
    between `-n` and `-n - 1`; None: there are none.
    """

    whole: tuple[int, int] | None
    fractions: tuple[int, int] | None
    negative_fractions: tuple[int, int] | None


class BooleanShape(Struct, frozen=True):
    """True or false."""


class NullShape(Struct, frozen=True):
    """Null."""


class ArrayShape(Struct, frozen=True):
    """So many values of one shape; None: no element is possible."""

    items: "Shape | None"
    min_items: int = 0
    max_items: int = 0


class Property(Struct, frozen=True):
    """One named value of an object; `note` is the schema's description of it."""

    name: str
    shape: "Shape"
    required: bool = False
    note: str = ""


class ObjectShape(Struct, frozen=True):
    """Named values. Where none is named, `others` is the shape of all (None: there are none)."""

    properties: tuple[Property, ...] = ()
    others: "Shape | None" = None


class UnionShape(Struct, frozen=True):
    """Any of several shapes."""

    choices: "tuple[Shape, ...]"


Shape: TypeAlias = (
    AnyShape
    | ConstShape
    | StringShape
    | IntegerShape
    | NumberShape
    | BooleanShape
    | NullShape
    | ArrayShape
    | ObjectShape
    | UnionShape
)
