"""Alignment of two texts."""

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.patch.comparison import Line, shared_blocks


def as_lines(text: str) -> list[Line]:
    return [(char, True) for char in text]


@given(st.text("abcdefgh", max_size=40), st.text("abcdefgh", max_size=40), st.sampled_from([0, 6, 1000]))
def test_blocks_are_equal_on_both_sides_and_rise(old: str, new: str, direct: int) -> None:
    blocks = shared_blocks(as_lines(old), as_lines(new), direct)
    for block in blocks:
        assert block.size > 0
        assert old[block.old : block.old + block.size] == new[block.new : block.new + block.size]
    for one, next_one in pairwise(blocks):
        assert one.old + one.size <= next_one.old
        assert one.new + one.size <= next_one.new
        assert (one.old + one.size, one.new + one.size) != (next_one.old, next_one.new)


@given(st.text("abc", max_size=20), st.text("abc", max_size=20), st.sampled_from([0, 1000]))
def test_equal_ends_are_always_found(head: str, tail: str, direct: int) -> None:
    blocks = shared_blocks(as_lines(f"{head}x{tail}"), as_lines(f"{head}y{tail}"), direct)
    assert sum(block.size for block in blocks) == len(head) + len(tail)


def test_lines_that_are_unique_keep_their_place_among_repetition() -> None:
    blocks = shared_blocks(as_lines("aaXaaYaa"), as_lines("bXbbYb"), 0)
    assert [(block.old, block.new, block.size) for block in blocks] == [(2, 1, 1), (5, 4, 1)]


def test_a_large_file_with_many_changes_takes_no_minutes() -> None:
    old = [(str(number), True) for number in range(60_000)]
    new = [(f"new {line}" if number % 50 == 0 else line, True) for number, (line, _) in enumerate(old)]
    started = time.process_time()
    assert sum(block.size for block in shared_blocks(old, new)) == 60_000 - 1200
    assert time.process_time() - started < 20  # seconds; difflib alone needs more than ten times as long as this takes
