"""Invisible characters, and those that look like a space, each replaced by its code: `‹200B›`.

Unicode's categories name most of them: controls, format characters, surrogates, private use, noncharacters, unassigned
code points, and spaces other than U+0020 and the wide U+3000. The lists below hold the rest: other default-ignorable or
blank characters. Marks, joiners and variation selectors are visible only on a letter or emoji that carries them.
"""

import re
import unicodedata
from functools import cache, lru_cache

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
