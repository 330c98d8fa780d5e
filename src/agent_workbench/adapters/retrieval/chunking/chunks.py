"""Chunk of a file: its lines, its symbol, and the word counts by which it is found."""

from collections.abc import Mapping

from msgspec import Struct

CHARS_PER_TOKEN = 4


class IndexedChunk(Struct, frozen=True):
    """Chunk with the lines `first_line` to `last_line` (from 1, inclusive).

    Stems are counted in all its text (`body`), in the `names` of the definitions it contains or belongs to, and in its
    `comments` and docstrings.
    """

    first_line: int
    last_line: int
    symbol: str
    body: Mapping[str, int]
    names: Mapping[str, int]
    comments: Mapping[str, int]


class Definition(Struct, frozen=True):
    """Definition in rows `first` to `last` (from 0, inclusive), with its comments and decorators.

    `signature` is the row of its name. `inside` are the definitions it contains, in order.
    """

    name: str
    first: int
    last: int
    signature: int
    inside: tuple["Definition", ...] = ()


class Comment(Struct, frozen=True):
    """Comment or docstring, and its first row."""

    row: int
    text: str


class Outline(Struct, frozen=True):
    """Outline of a file: its definitions, nested and in order, and its comments."""

    definitions: tuple[Definition, ...] = ()
    comments: tuple[Comment, ...] = ()
