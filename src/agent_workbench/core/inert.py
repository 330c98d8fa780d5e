"""The one place that makes foreign text harmless to look at: no control code, nothing invisible, bounded."""

import re

TAB_CELLS = 4
LIMIT_CHARS = 400_000
LINE_CHARS = 20_000

# Bidirectional controls, zero-width characters, line separators and byte-order marks: they change what is read.
_HIDDEN = (*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x061C, 0x180E, 0xFEFF, 0x00AD)
_JOINERS = frozenset({0x200C, 0x200D})
_CONTROLS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "␡",
    **{code: f"‹{code:02X}›" for code in range(0x80, 0xA0)},
    **{code: f"‹{code:04X}›" for code in _HIDDEN if code not in _JOINERS},
}
_DROPPED = dict.fromkeys((*_CONTROLS, 0x09, 0x0A))
# Half of a pair cannot be written to a terminal at all; tag characters hide a second text in a first.
_UNWRITABLE = re.compile("[\ud800-\udfff\U000e0000-\U000e007f]")


def inert(text: str, *, limit_chars: int = LIMIT_CHARS, keep_returns: bool = False) -> str:
    """Return `text` as it may be shown: line feeds stay, tabs become spaces, whatever else controls is made visible.

    `\\r\\n` ends a line like `\\n`, unless `keep_returns` asks to see each carriage return (in diffs). What is over
    `limit_chars` is cut, and so is what is over 20,000 characters of one line; the cut says how much is missing.
    """
    missing = len(text) - limit_chars
    kept = text if missing <= 0 else text[:limit_chars]
    # What can be printed needs nothing; to ask that costs far less than to look at each line.
    if not kept.replace("\n", "").isprintable() or (len(kept) > LINE_CHARS and not _lines_fit(kept)):
        plain = kept if keep_returns else kept.replace("\r\n", "\n")
        kept = "\n".join(_line(line) for line in plain.split("\n"))
    return kept if missing <= 0 else f"{kept}\n… {missing:,} characters more are not shown"


def inert_line(text: str, limit_chars: int = 500) -> str:
    """Return `text` as one harmless line, its white space run together, at most `limit_chars` long."""
    line = " ".join(inert(text[: 4 * limit_chars]).split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1] + "…"


def without_controls(text: str) -> str:
    """Return `text` with everything left out that has no width of its own, for text that is laid out already."""
    return text if text.isascii() and text.isprintable() else _UNWRITABLE.sub("", text.translate(_DROPPED))


def _lines_fit(text: str) -> bool:
    return all(len(line) <= LINE_CHARS for line in text.split("\n"))


def _line(line: str) -> str:
    missing = len(line) - LINE_CHARS
    shown = line if missing <= 0 else line[:LINE_CHARS]
    if "\t" in shown:
        shown = shown.expandtabs(TAB_CELLS)
    shown = _UNWRITABLE.sub("�", shown.translate(_CONTROLS))
    return shown if missing <= 0 else f"{shown}… {missing:,} characters more"
