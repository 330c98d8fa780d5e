"""Sanitizer of foreign text: no control codes, nothing invisible, no marks of chat templates, bounded length.

Unicode's categories name most of what is invisible: controls, format characters, surrogates, private use,
noncharacters, unassigned code points, and spaces other than U+0020 and the wide U+3000. The lists below hold the rest:
other default-ignorable or blank characters. Marks, joiners and variation selectors are visible only on a letter or
emoji that carries them.
"""

import re
import sys
import unicodedata
from functools import cache, lru_cache

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

MAX_MARKS = 6
"""Maximum number of marks on a letter: no script needs more, and a pile of them is unreadable."""

MAX_KNOWN_CHARS = 40
"""Maximum length of a word whose result is cached."""

# Default_Ignorable_Code_Point (DerivedCoreProperties.txt, Unicode 15.1) beyond the categories above.
_IGNORED = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
# Blank in the code charts: object replacement, Braille pattern blank, Khitan filler, musical null notehead.
_BLANK = "\ufffc\u2800\U00016fe4\U0001d159"
_UNSEEN = re.compile(f"[{_IGNORED}{_BLANK}]")
# Hangul vowels and final consonants (Hangul_Syllable_Type V and T) have no cell of their own; they join a letter.
_JOINING = re.compile("[\u1161-\u11ff\ud7b0-\ud7fb]")
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")
# Extended_Pictographic (emoji-data.txt, Unicode 15.1); the unassigned code points among them count as unassigned.
_PICTOGRAPHIC = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3"
    "\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705"
    "\u2708-\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767"
    "\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001f10f\U0001f12f\U0001f16c-\U0001f171\U0001f17e\U0001f17f\U0001f18e"
    "\U0001f191-\U0001f19a\U0001f1ad-\U0001f1e5\U0001f201-\U0001f20f\U0001f21a\U0001f22f\U0001f232-\U0001f23a"
    "\U0001f23c-\U0001f23f\U0001f249-\U0001f3fa\U0001f400-\U0001f53d\U0001f546-\U0001f64f\U0001f680-\U0001f6ff"
    "\U0001f774-\U0001f77f\U0001f7d5-\U0001f7ff\U0001f80c-\U0001f80f\U0001f848-\U0001f84f\U0001f85a-\U0001f85f"
    "\U0001f888-\U0001f88f\U0001f8ae-\U0001f8ff\U0001f90c-\U0001f93a\U0001f93c-\U0001f945\U0001f947-\U0001faff]"
)
_SELECTOR, _JOINER, _KEYCAP = "\ufe0f", "\u200d", "\u20e3"
_KEYS = frozenset("0123456789#*")
# Visible anywhere. Nearly every text consists of these alone and needs no closer look.
_ALONE = (
    "\n -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0377\u037a-\u037f\u0384-\u038a\u038e-\u03a1\u03a3-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2100-\u218b\u2190-\u2426\u2460-\u27ff\u2900-\u2b73\u3000-\u3029"
    "\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9ffc\uac00-\ud7a3\uff01-\uff9f\ufffd\U0001f300-\U0001f3fa"
    "\U0001f400-\U0001f64f"
)

_MARKER = re.compile(
    r"<(?=[|｜])"  # <|im_start|>, <|eot_id|>, <｜User｜>
    r"|(?<=[|｜])>"
    r"|<(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|start_header_id|end_header_id|eot_id|think|tool_call)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
    r"|<(?=</?SYS>>)",
    re.IGNORECASE,
)


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


@cache
def _other() -> re.Pattern[str]:
    # Its large ranges take longer to compile than all else that a short command needs.
    return re.compile(f"[^{_ALONE}]")


# Kinds of characters by what they carry or what carries them. No enum: they are compared for each character.
_PLAIN, _LETTER, _EMOJI, _MARK, _TONE, _HIDDEN = "plain", "letter", "emoji", "mark", "tone", "hidden"


def all_seen(text: str) -> bool:
    """Return True if every character is visible wherever it is, or ends a line. `with_codes` is not needed then."""
    if text.isascii():
        return text.isprintable() or text.replace("\n", "").isprintable()
    return _other().search(text) is None


def with_codes(line: str) -> str:
    """Return `line` with every invisible character replaced by its code.

    Visible are marks on a letter of their own script, and skin tones, joiners and selector 16 within an emoji.
    """
    # A space carries no mark, joiner or selector.
    return " ".join(map(_word_with_codes, line.split(" ")))


def _word_with_codes(word: str) -> str:
    if _other().search(word) is None:
        return word
    return _known_word(word) if len(word) <= MAX_KNOWN_CHARS else _looked_at(word)


@lru_cache(maxsize=8192)
def _known_word(word: str) -> str:
    return _looked_at(word)


def _looked_at(word: str) -> str:
    shown: list[str] = []
    carrier = carried = ""
    for at, char in enumerate(word):
        kind = _kind(char)
        if kind is _LETTER or kind is _EMOJI or char in _KEYS:
            carrier, carried = char, ""
            shown.append(char)
        elif kind is not _PLAIN and carrier and _carries(carrier, carried, char, word[at + 1 : at + 2]):
            carried += char
            shown.append(char)
        else:
            carrier = ""
            shown.append(char if kind is _PLAIN else f"‹{ord(char):04X}›")
    return "".join(shown)


def _carries(carrier: str, carried: str, char: str, after: str) -> bool:
    """Return True if `char` is visible after a letter or emoji and its marks so far; `after` is the next character."""
    kind, holder = _kind(char), _kind(carrier)
    if kind is _MARK and char != _KEYCAP:
        fits = holder is _LETTER and len(carried) < MAX_MARKS
        return fits and (_script(char) == _script(carrier) or _script(char) == "COMBINING")
    if kind is _TONE:
        return holder is _EMOJI and not carried
    if char == _JOINER:
        return holder is _EMOJI and bool(after) and _kind(after) is _EMOJI
    if char == _SELECTOR:
        return not carried and (holder is _EMOJI or (carrier in _KEYS and after == _KEYCAP))
    return char == _KEYCAP and carrier in _KEYS and carried in {"", _SELECTOR}


@lru_cache(maxsize=4096)
def _kind(char: str) -> str:
    if char in " \u3000":
        return _PLAIN
    if not char.isprintable() or _UNSEEN.match(char):
        return _HIDDEN
    if unicodedata.category(char).startswith("M") or _JOINING.match(char):
        return _MARK
    if _SKIN.match(char):
        return _TONE
    if _PICTOGRAPHIC.match(char):
        return _EMOJI
    return _LETTER if char.isalnum() else _PLAIN


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    """Return the script of a letter or mark, read from its Unicode name; COMBINING for marks of many scripts."""
    return unicodedata.name(char, "").partition(" ")[0]


def without_chat_markers(text: str) -> str:
    """Return the text with a space inside each marker of a chat template, so that it is plain text to a tokenizer."""
    return _MARKER.sub(lambda match: f" {match[0]}" if match[0] == ">" else f"{match[0]} ", text)
