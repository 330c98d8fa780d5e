"""A collection that changes text by text scores as one that was built at once, with the idf of BM25+."""

import random

import pytest
from rank_bm25 import BM25Plus

from agent_workbench.ranking.changing_collection import ChangingCollection
from agent_workbench.ranking.stems import count_stems

WORDS = ("retry", "deploy", "uv", "pip", "test", "cart", "total", "sum", "wind", "kite")


def text_of(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))


def found(texts: dict[str, str], collection: ChangingCollection, query: str) -> None:
    names = sorted(texts)
    corpus = [[stem for stem, times in count_stems(texts[name]).items() for _ in range(times)] for name in names]
    wanted = BM25Plus(corpus, delta=0).get_scores(list(count_stems(query)))
    expected = {name: score for name, score in zip(names, wanted.tolist(), strict=True) if score > 0}
    hits = collection.search(query)
    assert {hit.name: hit.score for hit in hits} == pytest.approx(expected)
    assert [hit.name for hit in hits] == sorted(expected, key=lambda name: (-round(expected[name], 9), name))


def test_scores_equal_bm25_plus_after_any_change() -> None:
    chance = random.Random(3)
    texts = {f"n{number}": text_of(chance) for number in range(150)}
    collection = ChangingCollection()
    collection.update({name: count_stems(text) for name, text in texts.items()}, frozenset())
    found(texts, collection, "retry kite")
    for _ in range(30):
        changed = {chance.choice((*texts, f"n{chance.randint(150, 190)}")): text_of(chance) for _ in range(5)}
        removed = frozenset(chance.sample(sorted(texts), 3)) - changed.keys()
        texts = {name: text for name, text in (texts | changed).items() if name not in removed}
        collection.update({name: count_stems(text) for name, text in changed.items()}, removed)
        found(texts, collection, "deploy uv uv absent")


def test_a_word_of_all_texts_counts_too() -> None:
    collection = ChangingCollection()
    assert collection.search("retry") == []
    collection.update({"one": count_stems("retrying"), "two": count_stems("retries deploy")}, frozenset())
    assert [(hit.name, hit.words) for hit in collection.search("Retry, deploy!")] == [
        ("two", ("deploy", "retry")),
        ("one", ("retry",)),
    ]
    collection.update({}, frozenset({"one", "two"}))
    assert collection.search("retry") == []
