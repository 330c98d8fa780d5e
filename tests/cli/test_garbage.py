"""Tests of what the garbage collector goes through while the screen is shown."""

import gc
from collections.abc import Iterator

import pytest

from agent_workbench.cli.front_end import THOROUGH_EACH, SurvivorsKept


class Knot:
    """Object that refers to itself: only the garbage collector finds out that nobody else does."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _survivors_are_kept() -> Iterator[None]:
    kept = SurvivorsKept()
    gc.collect()
    frozen = gc.get_freeze_count()
    gc.callbacks.append(kept)
    yield
    gc.callbacks.remove(kept)
    if not frozen:
        gc.unfreeze()


def test_what_survived_is_gone_through_once() -> None:
    long_lived = [[] for _ in range(1_000)]  # type: list[list[int]]
    gc.collect()
    assert len(gc.get_objects()) < len(long_lived) < gc.get_freeze_count()


@pytest.mark.slow
def test_young_collections_change_nothing() -> None:
    before = gc.get_freeze_count()
    gc.collect(1)
    assert gc.get_freeze_count() == before


@pytest.mark.slow
def test_garbage_among_the_survivors_is_found_in_the_end() -> None:
    knots = [Knot()]
    gc.collect()
    knots.clear()

    def left() -> int:
        gc_was = gc.get_freeze_count()
        gc.unfreeze()
        try:
            return sum(isinstance(each, Knot) for each in gc.get_objects())
        finally:
            if gc_was:
                gc.freeze()

    gc.collect()
    assert left() == 1
    for _ in range(THOROUGH_EACH):
        gc.collect()
    assert left() == 0
