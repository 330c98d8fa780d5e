"""Ranking of a small collection of texts for a query."""

from collections.abc import Sequence


def rank_texts(texts: Sequence[str], query: str, limit: int) -> tuple[int, ...]:
    """Return the positions of at most `limit` texts that contain a word of the query, best first. Blocks."""
    from agent_workbench.ranking.small_collection import SmallCollection

    return tuple(each.number for each in SmallCollection(texts).best(query, limit))
