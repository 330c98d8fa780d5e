"""A journal's lines are those that splitting its text gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.journal.reader import LineIndex


@given(st.lists(st.sampled_from([b"\n", b"ab", b"{}", b"\r"])).map(b"".join))
def test_they_are_what_splitting_gives(text: bytes) -> None:
    *whole, torn = text.split(b"\n")
    lines = LineIndex(text)
    assert list(lines) == whole
    assert list(lines[1:]) == whole[1:]
    assert lines.torn == torn
    assert lines[-1:] == tuple(whole[-1:])
    assert [lines[number] for number in range(-len(whole), len(whole))] == whole + whole
    for number in (len(whole), -len(whole) - 1):
        with pytest.raises(IndexError, match=f"line {number} of {len(whole)}"):
            lines[number]
