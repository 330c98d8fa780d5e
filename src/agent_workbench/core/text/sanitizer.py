"""Sanitizer of foreign text for display: no control codes, nothing invisible, bounded length. There is no other one."""

import re
import sys

from agent_workbench.core.text.invisible_characters import all_seen, with_codes

TAB_CELLS = 4
LIMIT_CHARS = 400_000
LINE_CHARS = 20_000
WHOLE_CHARS = 1_000_000
"""Maximum length of a line that is shown in full; a longer one cannot be approved."""

# Bidirectional controls, zero-width characters, line separators and byte order marks change how text reads.
_TURNS = (*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x061C, 0x180E, 0xFEFF, 0x00AD)
_JOINERS = frozenset({0x200C, 0x200D})
_CONTROLS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "␡",
    **{code: f"‹{code:02X}›" for code in range(0x80, 0xA0)},
}
_DROPPED = dict.fromkeys((*_CONTROLS, *(code for code in _TURNS if code not in _JOINERS), 0x09, 0x0A))
# Control sequences of a terminal, the last of which may be cut, and the choice of a character set that ends colours.
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|\Z)|\(B|\Z)")
# Lone surrogates cannot be written to a terminal; tag characters hide a second text in the first.
_UNWRITABLE = re.compile("[\ud800-\udfff\U000e0000-\U000e007f]")


def sanitize(
    text: str, *, limit_chars: int = LIMIT_CHARS, line_chars: int = LINE_CHARS, keep_returns: bool = False
) -> str:
    """Return `text` as it may be displayed. Line feeds stay, tabs become spaces, control characters become visible.

    Invisible characters are replaced by their code. `\\r\\n` ends a line like `\\n`, unless `keep_returns` asks to show
    each carriage return, as in diffs. Text over `limit_chars`, and each line over `line_chars`, is cut; the cut states
    its length.
    """
    missing = len(text) - limit_chars
    kept = text if missing <= 0 else text[:limit_chars]
    # This check is much cheaper than reading each line.
    if not all_seen(kept) or (len(kept) > line_chars and not is_within(kept, line_chars)):
        plain = kept if keep_returns else kept.replace("\r\n", "\n")
        kept = "\n".join(_line(line, line_chars) for line in plain.split("\n"))
    return kept if missing <= 0 else f"{kept}\n… {missing:,} more characters are not shown"


def sanitize_whole(text: str, *, keep_returns: bool = False) -> str:
    """Return `text` as it is displayed for approval: only a line over `WHOLE_CHARS` is cut."""
    return sanitize(text, limit_chars=sys.maxsize, line_chars=WHOLE_CHARS, keep_returns=keep_returns)


def sanitize_line(text: str, limit_chars: int = 500) -> str:
    """Return `text` as one line of at most `limit_chars` characters, with runs of white space collapsed."""
    line = " ".join(sanitize(text[: 4 * limit_chars]).split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1] + "…"


def without_colours(output: str) -> str:
    """Return the output of a program without the codes that colour it in a terminal."""
    return _COLOURS.sub("", output) if "\x1b" in output else output


def without_controls(text: str) -> str:
    """Return `text`, already laid out, without the characters that have no width."""
    return text if text.isascii() and text.isprintable() else _UNWRITABLE.sub("", text.translate(_DROPPED))


def is_within(text: str, line_chars: int) -> bool:
    """Return True if no line of `text` is longer than `line_chars`."""
    return len(text) <= line_chars or all(len(line) <= line_chars for line in text.split("\n"))


def _line(line: str, most: int) -> str:
    missing = len(line) - most
    shown = line if missing <= 0 else line[:most]
    if "\t" in shown:
        shown = shown.expandtabs(TAB_CELLS)
    shown = shown.translate(_CONTROLS)
    if not all_seen(shown):
        shown = with_codes(shown)
    return shown if missing <= 0 else f"{shown}… {missing:,} more characters"
