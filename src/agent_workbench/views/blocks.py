"""Building blocks of the views: tones, blocks of text, and entries of a list."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.checks.results import CodePlace


class Tone(StrEnum):
    """Meaning of a piece of text; a theme decides its colour."""

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
    CODE = "code"
    EMPHASIS = "emphasis"


class Block(Struct, frozen=True):
    """Some lines of one tone, with a label beside the first. `fold_lines` (0: all) are shown when folded.

    The text is sanitized already. `fold_end` keeps the last lines when folded instead of the first. `rule` draws a line
    to the right of the text. `clips` cuts long lines at the edge while folded. `folded` is one line that replaces the
    folded text, `more` replaces the number of hidden lines. `indent` cells precede each row of the text.
    `markdown`: the text is Markdown, which a list of steps renders (`views.markdown`).
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
    markdown: bool = False


class Entry(Struct, frozen=True):
    """One item of a list, which can be selected and, if something is folded, expanded; `place` is its position."""

    key: str
    blocks: tuple[Block, ...]
    place: CodePlace | None = None
