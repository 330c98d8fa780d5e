"""Runs that occur once: each offered one is found as long as it shares no more lines than the bound with another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.patch import hunk_rules
from agent_workbench.core.patch.hunk_rules import MAX_SHARED_LINES, SharedRuns, find_unique_runs


def runs_of(shared: SharedRuns, depth: int = 0) -> set[tuple[int, int]]:
    """Return the start and the length of each run that occurs once and that the steps lead to."""
    found: set[tuple[int, int]] = set()
    for way in shared.ways:
        assert way.at == way.start + depth
        if way.further is None:
            found.add((way.start, depth + 1))
        else:
            found |= {run for run in runs_of(way.further, depth + 1) if run[0] == way.start}
    return found


@given(st.lists(st.sampled_from("ab"), max_size=12), st.data())
def test_each_offered_run_is_found_at_its_least_length(lines: list[str], data: st.DataObject) -> None:
    offered = data.draw(st.sets(st.integers(0, len(lines)), max_size=len(lines)))
    wanted = set()
    with pytest.MonkeyPatch.context() as patch:
        most = data.draw(st.integers(0, 5))
        patch.setattr(hunk_rules, "MAX_SHARED_LINES", most)
        for start in range(len(lines)):
            runs = [lines[start : start + size] for size in range(1, len(lines) - start + 1)]
            once = next(
                (run for run in runs if [lines[at : at + len(run)] for at in range(len(lines))].count(run) == 1), []
            )
            if once and len(once) - 1 <= most and offered >= set(range(start, start + len(once))):
                wanted.add((start, len(once)))
        assert runs_of(find_unique_runs(lines, offered)) == wanted


def test_a_run_has_the_steps_that_lead_to_it() -> None:
    lines = ["a", "b", "a", "b", "c"]
    assert runs_of(find_unique_runs(lines, range(1, 5))) == {(1, 2), (2, 3), (3, 2), (4, 1)}
    assert runs_of(find_unique_runs(lines, {2, 3, 4})) == {(2, 3), (3, 2), (4, 1)}


def test_runs_may_share_16_lines() -> None:
    same = [f"line {number}" for number in range(MAX_SHARED_LINES + 1)]
    lines = [*same, "one", *same, "other"]
    starts = {way.start for way in find_unique_runs(lines, range(len(lines))).ways}
    assert (MAX_SHARED_LINES, 0 in starts, 1 in starts) == (16, False, True)
