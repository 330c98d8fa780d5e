"""The plain methods that the code search is compared with. `agent index eval` is tried in tests/cli/verbs/repo."""

from agent_workbench.adapters.retrieval.evaluation import LineHits


def test_more_different_words_go_before_more_hits() -> None:
    hits = LineHits({"a": "cart cart cart", "b": "Cart of TOTALs", "c": "nothing", "d": "cart"})
    assert hits.ranked(["total", "cart"], 9) == ["b", "a", "d"]
    assert hits.ranked(["total", "cart"], 1) == ["b"]
    assert hits.ranked([], 9) == []
