import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.errors import UsageError
from agent_workbench.core.patch.grammar_rules import literal


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ('say "so"', '"say \\"so\\""'),
        ("a\\nb", '"a\\\\nb"'),
        ("a\nb", '"a\\x0Ab"'),
        ("\x7f\x85", '"\\x7F\\x85"'),
        ("é😀", '"é😀"'),
        ("\u2028\U000e0001", '"\\u2028\\U000E0001"'),
        ("", '""'),
    ],
)
def test_quotes(text: str, quoted: str) -> None:
    assert literal(text) == quoted


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_literal_is_one_printable_line(text: str) -> None:
    quoted = literal(text)
    assert quoted.isprintable()
    assert quoted.replace("\\\\", "").replace('\\"', "").count('"') == 2


@pytest.mark.parametrize("text", ["a\0b", "\ud83d"])
def test_refuses_what_no_grammar_can_hold(text: str) -> None:
    with pytest.raises(UsageError, match="NUL or half"):
        literal(text)
