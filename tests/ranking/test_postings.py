"""Postings and vocabularies: what was put in is there, in one index or in several that were merged."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.ranking import postings as module
from agent_workbench.ranking.postings import MergeInput, Postings, build, grouped, merge
from agent_workbench.ranking.vocabulary import IndexVocabulary

WORDS = st.sampled_from(["a", "b", "ab", "größe", "中", "\ud800", "z" * 80, "", "read_file"])
DOCUMENTS = st.lists(st.lists(WORDS, max_size=8).map(Counter), max_size=6)


def documents_of(vocabulary: IndexVocabulary, postings: Postings) -> list[dict[str, int]]:
    """Return the counted words of each document."""
    found: list[dict[str, int]] = [{} for _ in postings.lengths]
    for number, word in enumerate(vocabulary):
        start, end = postings.starts[number : number + 2].tolist()
        rows = postings.rows[start:end].tolist()
        assert rows == sorted(set(rows))
        for row, count in zip(rows, postings.counts[start:end].tolist(), strict=True):
            found[row][word] = count
    return found


@settings(max_examples=30)
@given(DOCUMENTS, DOCUMENTS)
def test_what_is_built_holds_what_it_was_built_of(first: list[Counter[str]], second: list[Counter[str]]) -> None:
    vocabulary, (one, other) = build([first, second])
    assert documents_of(vocabulary, one) == first
    assert documents_of(vocabulary, other) == second
    assert one.lengths.tolist() == [each.total() for each in first]
    words = list(vocabulary)
    assert words == sorted({word for each in first + second for word in each})
    assert [vocabulary.find(word) for word in words] == list(range(len(words)))
    assert vocabulary.find("absent") == vocabulary.find("a\nb") == -1


def test_words_are_found_among_many() -> None:
    words = sorted({f"{letter}{number}" for letter in "abxé" for number in range(700)} | {"q" * 500})
    vocabulary = IndexVocabulary.of([word.encode() for word in words])
    assert [vocabulary.find(word) for word in words] == list(range(len(words)))
    assert {vocabulary.find(word) for word in ("", "a", "a7000", "c", "zz", "é", "q")} == {-1}
    with pytest.raises(ValueError, match="line end"):
        IndexVocabulary.of([b"a\nb"])


@settings(max_examples=30)
@given(st.lists(DOCUMENTS, min_size=1, max_size=4), st.data())
def test_merging_keeps_the_living_in_order(parts: list[list[Counter[str]]], data: st.DataObject) -> None:
    kept: list[Mapping[str, int]] = []
    shares = []
    for documents in parts:
        alive = [data.draw(st.booleans()) for _ in documents]
        rows = np.full(len(documents), -1, np.int32)
        rows[alive] = np.arange(len(kept), len(kept) + sum(alive))
        kept += [each for each, lives in zip(documents, alive, strict=True) if lives]
        vocabulary, fields = build([documents, documents])
        shares.append(MergeInput(vocabulary, fields, [rows, rows]))
    vocabulary, fields = merge(shares, [len(kept), len(kept)])
    assert [documents_of(vocabulary, field) for field in fields] == [kept, kept]
    assert list(vocabulary) == sorted({word for each in kept for word in each})
    assert fields[0].lengths.tolist() == [sum(each.values()) for each in kept]


def test_merging_in_small_steps_is_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOVED_AT_ONCE", 3)
    monkeypatch.setattr("agent_workbench.ranking.vocabulary._UNITED_AT_ONCE", 2)
    documents: Sequence[Counter[str]] = [Counter({f"w{n % 7}": n + 1, "all": 1}) for n in range(20)]
    others: Sequence[Counter[str]] = [Counter({f"{letter}{n % 3}": 2, "all": 1}) for n, letter in enumerate("azwvxy")]
    shares = []
    for some, start in ((documents, 0), (others, 20)):
        vocabulary, fields = build([some])
        shares.append(MergeInput(vocabulary, fields, [np.arange(start, start + len(some), dtype=np.int32)]))
    merged, (field,) = merge(shares, [26])
    assert documents_of(merged, field) == [*documents, *others]
    assert list(merged) == sorted({word for each in [*documents, *others] for word in each})


@pytest.mark.parametrize(("most", "kind"), [(255, np.uint8), (256, np.uint16), (70_000, np.int32)])
def test_counts_take_as_little_as_holds_them(most: int, kind: type) -> None:
    vocabulary, (postings,) = build([[{"a": most, "b": 1}, {"a": 2}]])
    assert postings.counts.dtype == kind
    assert documents_of(vocabulary, postings) == [{"a": most, "b": 1}, {"a": 2}]


def test_groups_of_documents_have_the_words_of_all_of_them() -> None:
    documents = [{"a": 200, "b": 1}, {"a": 100}, {}, {"b": 2}, {}]
    vocabulary, (postings,) = build([documents])
    groups = grouped(postings, np.array([0, 0, 2, 2, 3], np.int32), 5)
    assert documents_of(vocabulary, groups) == [{"a": 300, "b": 1}, {}, {"b": 2}, {}, {}]
    assert groups.lengths.tolist() == [301, 0, 2, 0, 0]
