"""A piece of a file: which lines, what it defines, and the words it is found by."""

from collections.abc import Mapping

from msgspec import Struct

CHARS_PER_TOKEN = 4


class Piece(Struct, frozen=True):
    """Lines `first_line` to `last_line` (from 1, inclusive).

    `body`, `names` and `comments` count the stems in all its text, in the names of the definitions it holds or is part
    of, and in its comments and docstrings.
    """

    first_line: int
    last_line: int
    symbol: str
    body: Mapping[str, int]
    names: Mapping[str, int]
    comments: Mapping[str, int]


class Definition(Struct, frozen=True):
    """A named thing in rows `first` to `last` (from 0, inclusive; its comments and decorators too) of a file.

    `signature` is the row in which it is named. `inside` are the definitions it holds, in order.
    """

    name: str
    first: int
    last: int
    signature: int
    inside: tuple["Definition", ...] = ()


class Comment(Struct, frozen=True):
    """A comment or docstring and the row it begins in."""

    row: int
    text: str


class Outline(Struct, frozen=True):
    """What a parser sees in a file: its definitions, nested and in order, and its comments."""

    definitions: tuple[Definition, ...] = ()
    comments: tuple[Comment, ...] = ()
