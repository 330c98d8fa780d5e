"""Words of code: identifiers are found whole and by their parts, and stems bring the forms of a word together."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.ranking.tokens import STOP_WORDS, count_identifiers, count_stems, split_identifiers, stem

ANY_TEXT = st.text(st.characters(exclude_categories=()))
CODE_LIKE = st.text("aZbYéßİ_0189.-λ中 ", max_size=60)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parseHTTPHeader2", ["parsehttpheader2", "parse", "http", "header", "2"]),
        ("read_file_at", ["read_file_at", "read", "file"]),
        ("__init__", ["init"]),
        ("utf8", ["utf8", "utf", "8"]),
        ("IOError: disk", ["ioerror", "io", "error", "disk"]),
        ("MAX_SIZE", ["max_size", "max", "size"]),
        ("größeÄndern", ["größeändern"]),
        ("a.b.c(x)", []),
        ("the file and its end", ["file", "end"]),
        ("___ -- !", []),
        ("file_2024_10", ["file_2024_10", "file", "2024", "10"]),
    ],
)
def test_split(text: str, words: list[str]) -> None:
    assert split_identifiers(text) == words


@given(ANY_TEXT | CODE_LIKE)
def test_whatever_the_text_words_are_whole_lower_and_not_empty(text: str) -> None:
    words = split_identifiers(text)
    assert all(words)
    assert all(word == word.lower() for word in words)
    assert not STOP_WORDS.intersection(words)
    assert not any(character.isspace() for word in words for character in word)


@given(ANY_TEXT | CODE_LIKE)
def test_counting_is_splitting(text: str) -> None:
    assert count_identifiers(text) == dict(Counter(split_identifiers(text)))


@given(st.lists(st.sampled_from(["read", "file", "http", "header", "worker", "queue"]), min_size=2, max_size=4))
def test_all_spellings_of_a_name_share_its_parts(parts: list[str]) -> None:
    camel = parts[0] + "".join(part.title() for part in parts[1:])
    for name in ("_".join(parts), camel, "".join(part.title() for part in parts), "_".join(parts).upper()):
        assert split_identifiers(name)[1:] == parts


def test_encoded_data_is_cut_to_its_beginning() -> None:
    assert max(map(len, split_identifiers("x" * 100_000 + " end"))) == 80


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
