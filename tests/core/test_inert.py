"""Foreign text is harmless, readable and bounded, whatever it is."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.inert import LINE_CHARS, TAB_CELLS, inert, inert_line, without_controls

ANYTHING = st.text(st.characters(), max_size=200) | st.text("\x1b]\x07\x9b[0m\r\n\t\u202e\ud800a", max_size=80)


def controls(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cs") and char != "\n"}


@given(ANYTHING)
def test_no_control_code_is_left_but_the_line_feed(text: str) -> None:
    assert not controls(inert(text))
    assert not controls(inert(text, keep_returns=True))
    assert not controls(inert_line(text)) | ({"\n"} & set(inert_line(text)))
    assert not controls(without_controls(text)) | ({"\n"} & set(without_controls(text)))


@given(ANYTHING)
def test_it_is_the_same_when_done_twice(text: str) -> None:
    assert inert(inert(text)) == inert(text)


@given(st.text(st.characters(categories=("L", "N", "P"), exclude_characters="\u00ad"), max_size=100))
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert inert(text) == text
    assert without_controls(text) == text


def test_what_would_control_is_seen() -> None:
    assert inert("\x1b]52;c;x\x07") == "␛]52;c;x␇"
    assert inert("\x9b31m") == "‹9B›31m"
    assert inert("a\u202eb") == "a‹202E›b"
    assert inert("\x00\x7f\ud800") == "␀␡�"


def test_lines_end_and_tabs_are_expanded() -> None:
    assert inert("a\r\nb\tc") == "a\nb" + " " * (TAB_CELLS - 1) + "c"
    assert inert("a\r\nb\rc", keep_returns=True) == "a␍\nb␍c"


def test_what_is_too_much_is_cut_and_said_so() -> None:
    assert inert("x" * 30, limit_chars=10) == "x" * 10 + "\n… 20 characters more are not shown"
    assert inert("x" * (LINE_CHARS + 5)).endswith("… 5 characters more")
    assert inert_line("a b\nc" * 400, 10) == "a b ca b c"[:9] + "…"
