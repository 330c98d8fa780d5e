"""Stems bring the forms of a word together, and keep different words apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.ranking.stems import count_stems, stem
from agent_workbench.ranking.tokens import count_identifiers


@pytest.mark.parametrize(
    "forms",
    [
        ["parse", "parses", "parsed", "parsing"],
        ["match", "matched", "matching"],
        ["query", "queries"],
        ["class", "classes"],
        ["stop", "stops", "stopped", "stopping"],
        ["call", "calls", "called", "calling"],
        ["file", "files"],
        ["cache", "caches", "cached", "caching"],
    ],
)
def test_forms_of_a_word_are_one(forms: list[str]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(
    "word", ["status", "string", "speed", "this", "css", "utf8", "read_files", "größen", "bed", ""]
)
def test_what_is_no_form_stays(word: str) -> None:
    assert stem(word) == word


@given(st.text(st.characters(exclude_categories=())) | st.text("singedaby", max_size=12))
def test_no_word_gets_lost(text: str) -> None:
    counts = count_stems(text)
    assert all(counts)
    assert sum(counts.values()) == sum(count_identifiers(text).values())
