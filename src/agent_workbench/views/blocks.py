"""The vocabulary of what is shown: what a piece of text is (its tone), blocks of it, and entries of a list."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.checks.failure_tree import CodePlace


class Tone(StrEnum):
    """What a piece of text is; a theme decides how it looks."""

    PLAIN = "plain"
    DIM = "dim"
    STRONG = "strong"
    TITLE = "title"
    ACCENT = "accent"
    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    ADDED = "added"
    REMOVED = "removed"
    ADDED_WORD = "added word"
    REMOVED_WORD = "removed word"
    HUNK = "hunk"
    FILE = "file"
    NUMBER = "number"
    KEY = "key"
    RULE = "rule"
    GONE = "gone"
    HIT = "hit"


class Block(Struct, frozen=True):
    """Some lines of one tone, with a word beside the first of them. `fold_lines` (0: all) are shown when not expanded.

    The text is inert already. `fold_end` keeps the last lines when folded, not the first. `rule` draws a line to the
    right of the text; `clips` cuts long lines at the edge while it is folded. `folded` is a line that stands in for all
    of the text while it is folded, `more` what stands for the lines held back instead of their number. `indent` cells
    stand before each row of the text.
    """

    text: str
    tone: Tone = Tone.PLAIN
    label: str = ""
    label_tone: Tone = Tone.DIM
    fold_lines: int = 0
    fold_end: bool = False
    clips: bool = False
    rule: bool = False
    space_before: bool = False
    folded: str = ""
    more: str = ""
    indent: int = 0


class Entry(Struct, frozen=True):
    """One thing of a list that can be selected and, when something is folded, expanded; `place` is what it is about."""

    key: str
    blocks: tuple[Block, ...]
    place: CodePlace | None = None
