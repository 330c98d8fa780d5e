"""Which pieces are shown."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.retrieval.selection import MOST_IN_A_FILE, select


def chosen(scores: list[float], files: list[int], named: list[int], limit: int) -> list[int]:
    return [each.piece for each in select(np.array(scores), files, named, limit)]


def test_a_file_with_several_good_pieces_comes_before_one_with_a_single_one() -> None:
    assert chosen([5.0, 4.9, 4.8, 4.7], [0, 1, 1, 1], [], 2)[0] == 1


def test_named_pieces_come_first_whatever_they_score() -> None:
    assert chosen([9.0, 8.0, 0.0, 7.0], [0, 1, 2, 3], [2], 3) == [2, 0, 1]


def test_many_named_pieces_leave_room_for_others() -> None:
    shown = chosen([1.0] * 8 + [9.0], list(range(9)), list(range(8)), 8)
    assert len(shown) == 8
    assert shown.index(8) == 6


def test_what_does_not_hit_is_not_shown() -> None:
    assert chosen([0.0, 1.0, 0.0], [0, 1, 2], [], 9) == [1]
    assert chosen([0.0], [0], [], 9) == []


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 7.5]), st.integers(0, 3)), min_size=1, max_size=30),
    st.sets(st.integers(0, 29)),
    st.integers(1, 12),
)
def test_always_few_of_a_file_in_order_of_score(pieces: list[tuple[float, int]], named: set[int], limit: int) -> None:
    scores, files = [score for score, _ in pieces], [file for _, file in pieces]
    named = {piece for piece in named if piece < len(pieces)}
    shown = select(np.array(scores), files, sorted(named), limit)
    assert len(shown) <= limit
    assert len({each.piece for each in shown}) == len(shown)
    assert all(each.score >= 0 for each in shown)
    assert [each.score for each in shown] == sorted((each.score for each in shown), reverse=True)
    of_file = [files[each.piece] for each in shown]
    assert all(of_file.count(file) <= MOST_IN_A_FILE for file in of_file)
    assert all(scores[each.piece] > 0 or each.piece in named for each in shown)
