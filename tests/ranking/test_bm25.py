"""BM25 gives what rank_bm25 gives, while documents come and go."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from agent_workbench.ranking.bm25 import Bm25

WORDS = ["read", "write", "file", "queue", "worker", "retry", "token", "self"]
DOCUMENTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=12)
QUERIES = st.lists(st.sampled_from([*WORDS, "absent"]), max_size=6)


def index_of(documents: list[list[str]]) -> Bm25:
    index = Bm25()
    for document in documents:
        index.add(Counter(document))
    return index


@given(DOCUMENTS.filter(any), QUERIES)
def test_scores_equal_rank_bm25(documents: list[list[str]], query: list[str]) -> None:
    wanted = BM25Okapi(documents).get_scores(query)
    assert index_of(documents).scores(query).tolist() == pytest.approx(wanted.tolist(), abs=1e-9)


@given(DOCUMENTS.filter(any), DOCUMENTS, QUERIES)
def test_after_removal_scores_are_those_of_what_is_left(
    kept: list[list[str]], removed: list[list[str]], query: list[str]
) -> None:
    index = Bm25()
    gone, left = [], []
    for place in range(max(len(kept), len(removed))):
        gone += [index.add(Counter(document)) for document in removed[place : place + 1]]
        left += [index.add(Counter(document)) for document in kept[place : place + 1]]
    for number in gone:
        index.remove(number)
    wanted = BM25Okapi(kept).get_scores(query)
    scores = index.scores(query)
    assert [scores[number] for number in left] == pytest.approx(wanted.tolist(), abs=1e-9)
    assert not scores[gone].any()
    assert {hit.index for hit in index.search(query, 99)} <= set(left)


@given(DOCUMENTS.filter(any), QUERIES)
def test_hits_are_all_that_hold_a_word_best_first(documents: list[list[str]], query: list[str]) -> None:
    hits = index_of(documents).search(query, len(documents))
    scores = BM25Okapi(documents).get_scores(query)
    assert {hit.index for hit in hits} == {place for place, words in enumerate(documents) if set(words) & set(query)}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert hit.score == pytest.approx(scores[hit.index], abs=1e-9)
        assert set(hit.words) == set(query) & set(documents[hit.index])


def test_what_each_word_adds_sums_up_to_the_score() -> None:
    index = index_of([["read", "file", "file"], ["write", "file"], ["queue"], ["worker", "retry"], ["token"]])
    for number in range(5):
        shares = index.explain(number, ["file", "read", "read", "token"])
        assert sum(share for _, share in shares) == pytest.approx(
            index.scores(["file", "read", "read", "token"])[number]
        )
    assert [word for word, _ in index.explain(0, ["file", "read"])] == ["read", "file"]


def test_postings_of_removed_documents_are_dropped_and_scores_stay() -> None:
    index = Bm25()
    kept = [index.add(Counter(["file", f"name{place}"])) for place in range(5)]
    for place in range(2_500):
        index.remove(index.add(Counter(["file", f"gone{place}"])))
    assert len(index) == 5
    wanted = BM25Okapi([["file", f"name{place}"] for place in range(5)]).get_scores(["file", "name3"])
    assert index.scores(["file", "name3"])[kept].tolist() == pytest.approx(wanted.tolist(), abs=1e-9)
    assert [hit.index for hit in index.search(["name3"], 9)] == [kept[3]]


def test_nothing_is_found_in_nothing() -> None:
    index = Bm25()
    assert index.search(["file"], 3) == []
    number = index.add(Counter(["file"]))
    index.remove(number)
    assert index.search(["file"], 3) == []
    with pytest.raises(KeyError):
        index.remove(number)
    assert index.search([], 3) == []


def test_empty_documents_are_documents() -> None:
    documents: list[list[str]] = [[], ["file"], [], ["file", "read"]]
    assert index_of(documents).scores(["read"]).tolist() == pytest.approx(
        BM25Okapi(documents).get_scores(["read"]).tolist()
    )
    assert index_of([[], []]).search(["file"], 2) == []
