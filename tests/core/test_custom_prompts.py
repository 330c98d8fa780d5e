"""Calls of the user's own prompts, and their expansion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.custom_prompts import NamedCall, expand, named_call


@pytest.mark.parametrize(
    ("text", "words", "expanded"),
    [
        ("Fix issue $ARGUMENTS.", '12  "a b"', 'Fix issue 12  "a b".'),
        ("$1 then $2, $1", "a b c", "a then b, a"),
        ('"$1" and $2', "\"two words\" 'not these'", '"two words" and \'not'),
        ("left $1 and $9!", "", "left  and !"),
        ("No placeholder.", "", "No placeholder."),
        ("No placeholder.", "some words", "No placeholder.\n\nsome words"),
        ("costs $10 in $ARGUMENTS_LIST and $HOME, $$, $0", "", "costs $10 in $ARGUMENTS_LIST and $HOME, $$, $0"),
        ("$1", "$2 $ARGUMENTS", "$2"),
        ("!`rm -rf /` $(id) @$1", "a.py", "!`rm -rf /` $(id) @a.py"),
        ("$1|$2|$3", 'an "open quote', 'an|"open|quote'),
    ],
)
def test_the_words_of_a_call_are_put_in(text: str, words: str, expanded: str) -> None:
    assert expand(text, words) == expanded


@given(st.text(), st.text())
def test_what_is_put_in_is_not_expanded_again(before: str, words: str) -> None:
    before = before.replace("$", "")
    assert expand(f"{before}$ARGUMENTS", words) == f"{before}{words}"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/fix", NamedCall("fix")),
        (" /fix-it_2  12 \n a ", NamedCall("fix-it_2", "12 \n a")),
        *((other, None) for other in ("", "fix", "/", "/Fix", "/etc/hosts is read", "/-x", "say /fix", f"/{'x' * 65}")),
    ],
)
def test_a_call_begins_with_a_name(text: str, call: NamedCall | None) -> None:
    assert named_call(text) == call
