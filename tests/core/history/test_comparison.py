"""Two sessions beside each other: where they part, what each took since, what a person reads of it."""

from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.history.comparison import compare
from agent_workbench.core.ids import SessionId
from agent_workbench.core.patch.values import HunkFate
from agent_workbench.core.proposals import HunkVerdict
from agent_workbench.core.repo.workspace import FileStat
from agent_workbench.views.reports.comparison import file_lines, parting_line, result_line, table_lines, view_comparison
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

CHILD = SessionId("20261121T101500-bc3def")
HEAD = runs.up_to_first_diff()


def recorded(*happened: e.Event) -> tuple[e.Recorded, ...]:
    return ScriptedSession(*happened).as_replay().newest.live.replay.recording.events  # type: ignore[union-attr]


def forked(parent: tuple[e.Recorded, ...], *own: e.Event) -> tuple[e.Recorded, ...]:
    """Return the journal of a fork: its header, the parent's events with their times, then its own at other times."""
    given = len(recorded(*HEAD))
    header = parent[0].event
    assert isinstance(header, e.SessionStarted)
    first = replace(parent[0], event=replace(header, session=CHILD, parent=header.session, parent_seq=given - 1))
    later = [replace(each, time=each.time.replace("2026-", "2027-")) for each in recorded(*HEAD, *own)[given:]]
    return (first, *parent[1:given], *later)


def test_a_fork_and_its_parent_part_where_it_was_forked() -> None:
    parent = recorded(*runs.up_to_reflexion())
    waits = parent[len(recorded(*HEAD)) - 1].event
    assert isinstance(waits, e.ActionProposed)
    part = replace(waits.proposal, hunks=(HunkVerdict("h", HunkFate.TAKEN), HunkVerdict("i", HunkFate.LEFT)))
    child = forked(parent, e.ProposalReplaced(part, "a part of it", e.Author.USER), *runs.applied(part))
    found = compare(parent, child)
    assert found.parted == len(recorded(*HEAD)) - 1
    assert (found.first.session, found.second.session, found.second.task) == (
        runs.SESSION,
        CHILD,
        runs.T1,
    )
    assert (found.second.in_all.by_hunk, found.second.since.approved, found.second.since.answers) == (1, 1, 0)
    assert found.first.since.answers == found.first.in_all.answers - found.second.in_all.answers > 0


def test_what_a_person_reads() -> None:
    parent = recorded(*runs.up_to_reflexion())
    found = compare(parent, forked(parent))
    files = (FileStat("shop/cart.py", 3, 1), FileStat("a\x1b[2J.bin", None, None))
    told = replace(found, first=replace(found.first, files=files), diff="")
    assert parting_line(told).startswith(f"They diverge after event {found.parted}, step 2: ")
    table = {line[:18].strip(): line[18:].split() for line in table_lines(told)}
    assert table[""] == ["ab2cde", "bc3def"]
    assert table["status"] == ["not", "finished", "not", "finished"]
    assert table["steps"][0] == "2"
    assert file_lines(told)[1:] == ("binary  ·       a␛[2J.bin", "+3 −1   ·       shop/cart.py")
    assert result_line(told) == "Both results have the same files."
    assert "no longer" in result_line(replace(told, diff=None))
    assert view_comparison(replace(told, diff=runs.RIGHT)).diff == runs.RIGHT


def test_sessions_that_are_not_related_have_no_common_step() -> None:
    one = recorded(*HEAD)
    other = tuple(replace(each, time=each.time.replace("2026-", "2027-")) for each in one)
    found = compare(one, other)
    assert (found.parted, parting_line(found)) == (None, "They have no common step.")
    assert found.first.since == found.first.in_all
    assert not any("since" in line for line in table_lines(found))
