from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.state.growing_tuple import GrowingTuple, JoinedSequence


def grown(items: str, log: GrowingTuple[str] | None = None) -> GrowingTuple[str]:
    return reduce(GrowingTuple[str].plus, items, log or GrowingTuple())


def test_reads_like_a_tuple() -> None:
    log, plain = grown("abcde"), tuple("abcde")
    assert (list(log), len(log), list(reversed(log))) == (list(plain), 5, list(reversed(plain)))
    assert [log[at] for at in range(-5, 5)] == [plain[at] for at in range(-5, 5)]
    assert [log[:2], log[-2:], log[::-2], log[9:]] == [plain[:2], plain[-2:], plain[::-2], plain[9:]]
    assert ("c" in log, "x" in log, bool(log), bool(GrowingTuple())) == (True, False, True, False)


def test_a_log_stays_as_it_is_whatever_grows_from_it() -> None:
    log = grown("abc")
    one, other = grown("de", log), grown("xyz", log)
    assert [*map("".join, (log, one, other))] == ["abc", "abcde", "abcxyz"]
    assert "".join(grown("!", one)) == "abcde!"
    with pytest.raises(IndexError, match="no item 3 in a log of 3"):
        log[3]
    with pytest.raises(IndexError):
        log[-4]


def test_none_is_an_item_like_others() -> None:
    log: GrowingTuple[None] = GrowingTuple()
    assert list(log.plus(None).plus(None)) == [None, None]


def test_equal_logs_are_equal_whoever_they_share_with() -> None:
    log = grown("abc")
    longer = log.plus("d")
    assert log == grown("abc") == GrowingTuple("abc")
    assert hash(log) == hash(grown("abc"))
    assert len({log, grown("abc"), longer, log.plus("d"), log.plus("e")}) == 3
    assert log != longer
    assert log != ("a", "b", "c")


def test_a_long_log_grows_in_one_list() -> None:
    log = GrowingTuple(range(3))
    for number in range(3, 2000):
        before, log = log, log.plus(number)
        assert log._items is before._items  # what makes it cheap
    assert log[-1] == 1999


@given(st.lists(st.lists(st.integers(), max_size=4), max_size=5))
def test_joined_sequences_read_as_one(parts: list[list[int]]) -> None:
    joined, flat = JoinedSequence(parts), [each for part in parts for each in part]
    assert list(joined) == flat
    assert len(joined) == len(flat)
    assert joined[1:] == tuple(flat[1:])
    assert [joined[-1 - at] for at in range(len(flat))] == flat[::-1]
