"""Foreign text is harmless, readable and bounded, whatever it is."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent_workbench.core.text.sanitizer import (
    LINE_CHARS,
    TAB_CELLS,
    WHOLE_CHARS,
    sanitize,
    sanitize_line,
    sanitize_whole,
    without_colours,
    without_controls,
)

ANYTHING = st.text(st.characters(), max_size=200) | st.text("\x1b]\x07\x9b[0m\r\n\t\u202e\ud800a", max_size=80)


def controls(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cs") and char != "\n"}


@given(ANYTHING)
def test_no_control_code_is_left_but_the_line_feed(text: str) -> None:
    assert not controls(sanitize(text))
    assert not controls(sanitize(text, keep_returns=True))
    assert not controls(sanitize_line(text)) | ({"\n"} & set(sanitize_line(text)))
    assert not controls(without_controls(text)) | ({"\n"} & set(without_controls(text)))


@given(ANYTHING)
def test_it_is_the_same_when_done_twice(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)


JOINING = "".join(map(chr, (*range(0x1160, 0x1200), *range(0xD7B0, 0xD7FC))))
FILLERS = "\u115f\u3164\uffa0\U00016fe4"


@given(st.text(st.characters(categories=("L", "N", "P"), exclude_characters=JOINING + FILLERS), max_size=100))
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert sanitize(text) == text
    assert without_controls(text) == text


def test_what_would_control_is_seen() -> None:
    assert sanitize("\x1b]52;c;x\x07") == "␛]52;c;x␇"
    assert sanitize("\x9b31m") == "‹9B›31m"
    assert sanitize("a\u202eb") == "a‹202E›b"
    assert sanitize("\x00\x7f\ud800") == "␀␡‹D800›"


def test_the_codes_that_colour_an_output_are_taken_out_and_nothing_else() -> None:
    assert without_colours("a\x1b[1;31mb\x1b[0m c\x1b[?25h\x1b(B\x1b[38;5") == "ab c"
    assert without_colours("\x1b]8;;x\x07 \x1bM [31m") == "\x1b]8;;x\x07 \x1bM [31m"


def test_lines_end_and_tabs_are_expanded() -> None:
    assert sanitize("a\r\nb\tc") == "a\nb" + " " * (TAB_CELLS - 1) + "c"
    assert sanitize("a\r\nb\rc", keep_returns=True) == "a␍\nb␍c"


def test_what_is_too_much_is_cut_and_said_so() -> None:
    assert sanitize("x" * 30, limit_chars=10) == "x" * 10 + "\n… 20 more characters are not shown"
    assert sanitize("x" * (LINE_CHARS + 5)).endswith("… 5 more characters")
    assert sanitize_line("a b\nc" * 400, 10) == "a b ca b c"[:9] + "…"


# DerivedCoreProperties.txt of Unicode 15.1, Default_Ignorable_Code_Point, as published.
DEFAULT_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
BLANK = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x2800, 0xFFF9, 0xFFFC, 0x1D159)


def shown_behind(before: str, chars: list[str]) -> list[str]:
    """Return what is shown of each character behind this, each in a line of its own."""
    lines = sanitize("\n".join(before + char for char in chars), limit_chars=10_000_000).split("\n")
    return [line.removeprefix(before) for line in lines]


def test_every_code_point_that_is_ignorable_or_blank_is_shown_as_its_code() -> None:
    ignorable = [code for first, last in DEFAULT_IGNORABLE for code in range(first, last + 1)]
    assert len(ignorable) == 4174
    for code in (*ignorable, *BLANK):
        assert sanitize(f"a{chr(code)}b") == f"a‹{code:04X}›b"
        assert sanitize_line(chr(code)) == f"‹{code:04X}›"
        assert sanitize_whole(f"a{chr(code)}b", keep_returns=True) == f"a‹{code:04X}›b"


def distinct_characters() -> list[str]:
    """Return all of Unicode; of long runs of letters or of nothing that is assigned, the ends and what has no width."""
    every = [chr(code) for code in range(0x110000)]
    kinds = [*map(unicodedata.category, every), ""]
    return [
        char
        for code, char in enumerate(every)
        if kinds[code] not in {"Cn", "Co", "Cs", "Lo"}
        or not kinds[code - 1] == kinds[code] == kinds[code + 1]
        or (kinds[code] == "Lo" and cell_len(char) == 0)
    ]


@pytest.mark.slow
def test_in_all_of_unicode_what_has_no_width_is_a_mark_on_a_letter_or_shown() -> None:
    every = [char for char in distinct_characters() if char not in "\t\n\r "]
    categories = dict(zip(every, map(unicodedata.category, every), strict=True))
    hidden = {"Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Mn", "Mc", "Me"}
    for char, shown in zip(every, shown_behind("", every), strict=True):
        if categories[char] == "Cc":
            assert shown != char
        elif categories[char] in hidden or cell_len(char) == 0:
            assert shown == f"‹{ord(char):04X}›"
    named = [char for char in every if categories[char] not in {"Cn", "Co", "Cs", "Cc", "Lo"} or cell_len(char) == 0]
    behind = [shown_behind(before, named) for before in ("", "a", "😀", "=")]
    for char, alone, on_letter, on_emoji, on_sign in zip(named, *behind, strict=True):
        assert alone == on_sign
        if on_letter != alone:
            assert on_letter == char
            assert categories[char] in {"Mn", "Me"}
            assert unicodedata.name(char).startswith(("COMBINING", "LATIN"))
        if on_emoji != alone:
            assert on_emoji == char
            assert char == "\ufe0f" or "EMOJI MODIFIER" in unicodedata.name(char)


@given(st.text(st.characters(), max_size=60) | st.text("a1#😀👍\ufe0f\u200d\u20e3\u0301\u064b\U0001f3fd ", max_size=20))
def test_what_is_not_seen_alone_is_carried_by_a_letter_or_an_emoji(text: str) -> None:
    """What is left of no width stands behind something of width on the same word, and not in a heap."""
    for word in re.split("[ \n]", sanitize(text)):
        assert not word or cell_len(word[0])
        for run in re.findall("[\u0300-\u036f\u064b-\u065f]+", word):
            assert len(run) <= 6
        assert "\u200d\u200d" not in word
        assert "\ufe0f\ufe0f" not in word


@pytest.mark.parametrize(
    "text",
    [
        *("é", "ä́", "हिन्दी क्षि", "עִבְרִית", "مَرْحَبًا", "ภาษาไทยที่นี่", "Tiếng Việt", "မြန်မာ"),
        *("👍🏽", "❤️", "👩‍👩‍👧‍👦", "🏳️‍🌈", "1️⃣#️⃣", "🇩🇪", "©️", "日本語　全角", "한국", "한국"),
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert sanitize(text) == text
    assert sanitize(unicodedata.normalize("NFD", text)) == unicodedata.normalize("NFD", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x\ufe0f", "x‹FE0F›"),
        ("1\ufe0f", "1‹FE0F›"),
        ("😀\ufe0f\ufe0f", "😀\ufe0f‹FE0F›"),
        ("😀\u200d", "😀‹200D›"),
        ("😀\u200dx", "😀‹200D›x"),
        ("a\u200d😀", "a‹200D›😀"),
        ("🏴\U000e0067\U000e007f", "🏴‹E0067›‹E007F›"),
        ("a\u064b", "a‹064B›"),
        ("a" + "\u0301" * 8, "a" + "\u0301" * 6 + "‹0301›" * 2),
        ("rm -rf build\u00a0/", "rm -rf build‹00A0›/"),
    ],
)
def test_what_only_looks_like_a_sequence_is_shown(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_what_can_be_approved_is_cut_only_where_it_cannot_be_approved() -> None:
    assert sanitize_whole("x" * WHOLE_CHARS) == "x" * WHOLE_CHARS
    assert sanitize_whole("x" * (WHOLE_CHARS + 5)).endswith("x… 5 more characters")
    long = "\n".join(["x" * 1000] * 2000)
    assert sanitize_whole(long) == long
