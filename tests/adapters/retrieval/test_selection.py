"""Which pieces are shown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.scoring import MAX_PER_FILE, select
from tests.adapters.retrieval.index.test_workspace_index import file, index_of


@pytest.fixture(scope="module")
def view() -> IndexView:
    """Return a view of four files, with 1, 3, 5 and 1 pieces."""
    sizes = {"a.py": 1, "b.py": 3, "c.py": 5, "d.py": 1}
    return index_of([file(path, path, *["read"] * size) for path, size in sizes.items()]).view


def chosen(view: IndexView, files: list[float], chunks: list[float], named: list[int], limit: int) -> list[int]:
    return [each.chunk for each in select(view, np.array(files), np.array(chunks), named, limit)]


def test_the_best_file_comes_first_with_its_best_chunk(view: IndexView) -> None:
    assert chosen(view, [1, 9, 2, 0], [9, 1, 3, 0, 5, 4, 3, 2, 1, 9], [], 4) == [2, 1, 4, 5]


def test_named_chunks_come_first_whatever_they_score(view: IndexView) -> None:
    assert chosen(view, [9, 0, 5, 0], [1] * 10, [9], 3) == [9, 0, 4]
    assert chosen(view, [9, 0, 5, 0], [1] * 10, [8], 2) == [8, 0]


def test_many_named_chunks_leave_room_for_others(view: IndexView) -> None:
    assert 0 in chosen(view, [9, 1, 1, 1], [1] * 10, [1, 2, 3, 4, 5, 6, 9], 4)


def test_all_that_is_named_comes_first_while_it_is_fewer_than_what_is_shown(view: IndexView) -> None:
    # Four frames of a stack trace, all in one file that little else speaks for.
    shown = chosen(view, [9, 1, 1, 8], [1] * 10, [4, 5, 6, 7], 5)
    assert (set(shown[:4]), shown[4]) == ({4, 5, 6, 7}, 0)


def test_what_defines_a_name_comes_first_in_its_file_and_no_file_before_another_for_it(view: IndexView) -> None:
    scores = [9, 1, 3, 0, 5, 4, 3, 2, 0, 9]
    shown = select(view, np.array([1.0, 9, 2, 0]), np.array(scores, float), [], 9, defining={8, 9})
    of_file_c = [(each.chunk, each.score) for each in shown if each.chunk in range(4, 9)]
    assert of_file_c[0] == (8, 2.0)
    assert [chunk for chunk, _ in of_file_c[1:]] == [4, 5]
    assert chosen(view, [0, 0, 1, 0], [0] * 10, [], 9) == [4]
    assert select(view, np.array([0.0, 0, 1, 0]), np.zeros(10), [], 9, defining={6})[0].chunk == 6


def test_what_nothing_speaks_for_is_not_shown(view: IndexView) -> None:
    assert chosen(view, [0, 1, 0, 0], [0, 1, 0, 0, 1, 1, 1, 1, 1, 1], [], 9) == [1]
    # What only the past or its folder speaks for shows where it begins.
    assert chosen(view, [0, 1, 0, 0], [0] * 10, [], 9) == [1]
    assert chosen(view, [0] * 4, [0] * 10, [], 9) == []


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.5]), min_size=4, max_size=4),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.5]), min_size=10, max_size=10),
    st.sets(st.integers(0, 9)),
    st.integers(1, 12),
)
def test_always_few_of_a_file_in_order_of_score(
    view: IndexView, files: list[float], chunks: list[float], named: set[int], limit: int
) -> None:
    shown = select(view, np.array(files), np.array(chunks), sorted(named), limit)
    numbers = [each.chunk for each in shown]
    assert len(shown) <= limit
    assert len(set(numbers)) == len(numbers)
    assert [each.score for each in shown] == sorted((each.score for each in shown), reverse=True)
    described = view.file_of[[each for each in numbers if each not in named]].tolist()
    assert all(described.count(each) <= MAX_PER_FILE for each in described)
    assert all(files[view.file_of[each]] > 0 or each in named for each in numbers)
