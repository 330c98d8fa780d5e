"""Small collections: changed text by text they score as built at once, with the idf of BM25+, whatever is in them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from agent_workbench.ranking.small_collections import ChangingCollection, SmallCollection
from agent_workbench.ranking.tokens import count_stems

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


NOTES = (
    "Retry a request when the server is busy; the timeout grows each time.",
    "Invoices are rounded to cents. Retry never.",
    "The screen is drawn 60 times a second.",
)


def test_the_text_with_more_and_rarer_words_comes_first() -> None:
    found = SmallCollection(NOTES).best("retrying after a server timeout", 9)
    assert [each.number for each in found] == [0, 1]
    assert found[0].stems == ("server", "timeout", "retry")
    assert found[0].score > found[1].score > 0


def test_a_word_in_every_text_of_two_still_ranks() -> None:
    found = SmallCollection(["merge conflict today", "merge merge conflict"]).best("merge", 9)
    assert [each.number for each in found] == [1, 0]
    assert all(each.score > 0 for each in found)


def test_no_more_come_than_are_wanted_and_equals_in_their_order() -> None:
    assert [each.number for each in SmallCollection(["a word"] * 5).best("word", 3)] == [0, 1, 2]


@pytest.mark.parametrize("texts", [[], [""], ["", " \n", "the of"], ["words"]])
def test_what_has_no_such_word_is_not_found(texts: list[str]) -> None:
    assert SmallCollection(texts).best("unheard", 9) == []
    assert SmallCollection(texts).best("", 9) == []


@given(st.lists(st.text(max_size=40), max_size=8), st.text(max_size=40))
def test_whatever_is_asked_is_answered_in_order(texts: list[str], query: str) -> None:
    found = SmallCollection(texts).best(query, 5)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert len({each.number for each in found}) == len(found) <= min(5, len(texts))
    assert all(each.stems for each in found)
