"""BM25 gives what rank_bm25 gives: over one part, over several, and when documents are gone."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import rank_bm25
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.postings import build
from agent_workbench.ranking.postings_reader import IndexPart
from agent_workbench.ranking.tokens import split_identifiers

WORDS = ["read", "write", "file", "queue", "worker", "retry", "token", "self"]
DOCUMENTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=12)
QUERIES = st.lists(st.sampled_from([*WORDS, "absent"]), max_size=6)


def index_of(documents: Sequence[Sequence[str]]) -> Bm25:
    return Bm25.of([Counter(document) for document in documents])


def part_of(documents: Sequence[Sequence[str]], alive: Sequence[bool] | None = None) -> IndexPart:
    vocabulary, (postings,) = build([[Counter(document) for document in documents]])
    return IndexPart(vocabulary, postings, None if alive is None else np.array(alive, bool))


def real_documents() -> list[list[str]]:
    """Return the lines of real source in groups, some of them empty."""
    lines = Path(rank_bm25.__file__).read_text(encoding="utf-8").split("\n")
    return [split_identifiers("\n".join(lines[start : start + 4])) for start in range(0, len(lines), 4)]


def test_scores_equal_rank_bm25_on_real_text() -> None:
    documents = [*real_documents(), [], ["self"] * 300]
    okapi, index = BM25Okapi(documents), index_of(documents)
    words = sorted({word for document in documents for word in document})
    assert sum("self" in document for document in documents) > len(documents) / 4
    chooser = random.Random(4)
    for _ in range(50):
        query = [*chooser.choices([*words, "absent"], k=20), "self", "self"]
        assert index.scores(query).tolist() == pytest.approx(okapi.get_scores(query).tolist(), abs=1e-9)


@settings(max_examples=30)
@given(DOCUMENTS.filter(any), QUERIES)
def test_scores_equal_rank_bm25(documents: list[list[str]], query: list[str]) -> None:
    wanted = BM25Okapi(documents).get_scores(query)
    assert index_of(documents).scores(query).tolist() == pytest.approx(wanted.tolist(), abs=1e-9)


@settings(max_examples=30)
@given(DOCUMENTS.filter(any), DOCUMENTS, QUERIES)
def test_dead_documents_are_as_if_they_had_never_been(
    kept: list[list[str]], dead: list[list[str]], query: list[str]
) -> None:
    index = Bm25([part_of(dead + kept, [False] * len(dead) + [True] * len(kept))])
    wanted = BM25Okapi(kept).get_scores(query).tolist()
    assert len(index) == len(kept)
    assert index.scores(query).tolist() == pytest.approx([0.0] * len(dead) + wanted, abs=1e-9)
    held = [0] * len(dead) + [len(set(document) & set(query)) for document in kept]
    assert index.coverage(query).tolist() == held
    assert index.holders("file").tolist() == [row for row, words in enumerate(kept, len(dead)) if "file" in words]


def test_many_parts_score_as_one() -> None:
    documents = real_documents()
    parts = [part_of(documents[start : start + 9]) for start in range(0, len(documents), 9)]
    okapi, index = BM25Okapi(documents), Bm25(parts)
    # What is in no more than half of the documents, for the rest hangs on a mean that lags.
    telling = [word for word in okapi.idf if sum(word in document for document in documents) <= len(documents) / 2]
    query = [*telling[::7], "corpus", "corpus", "absent"]
    assert index.scores(query).tolist() == pytest.approx(okapi.get_scores(query).tolist(), abs=1e-9)


def test_a_word_of_most_documents_keeps_some_weight_where_the_mean_lags() -> None:
    documents = [["self", f"name{number}"] for number in range(30)]
    whole, apart = index_of(documents), Bm25([part_of(documents[:20]), part_of(documents[20:])])
    exact = BM25Okapi(documents).get_scores(["self"])[0]
    assert whole.scores(["self"])[0] == pytest.approx(exact, abs=1e-9)
    assert apart.scores(["self"])[25] == pytest.approx(exact, rel=0.3)


def test_a_query_of_very_many_postings_is_scored_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = real_documents()
    query = sorted({word for document in documents for word in document})
    monkeypatch.setattr("agent_workbench.ranking.postings_reader._READ_AT_ONCE", 10)
    assert index_of(documents).scores(query).tolist() == pytest.approx(
        BM25Okapi(documents).get_scores(query).tolist(), abs=1e-9
    )


def test_what_each_word_adds_sums_up_to_the_score() -> None:
    parts = [part_of([["read", "file", "file"], ["write", "file"]]), part_of([["queue"], ["worker"], ["token"]])]
    index = Bm25(parts)
    query = ["file", "read", "read", "token"]
    for row in range(5):
        assert sum(share for _, share in index.explain(row, query)) == pytest.approx(index.scores(query)[row])
    assert [word for word, _ in index.explain(0, query)] == ["read", "file"]
    assert Bm25([part_of([["file"], ["read"]], [False, True])]).explain(0, ["file"]) == []


@pytest.mark.parametrize("parts", [[], [part_of([])], [part_of([[], []])], [part_of([["file"]], [False])]])
def test_nothing_is_found_in_nothing(parts: list[IndexPart]) -> None:
    index = Bm25(parts)
    assert not index.scores(["file"]).any()
    assert not index.coverage(["file"]).any()
    assert index.holders("file").tolist() == []
