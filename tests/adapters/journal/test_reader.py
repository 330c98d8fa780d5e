import time
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.line_format import encode_line
from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.core import events as e
from agent_workbench.core.errors import JournalError, StorageError
from agent_workbench.core.events.codec import encode_event
from agent_workbench.core.history.journal_proof import Problem
from agent_workbench.core.ids import ProposalId
from tests.adapters.journal.journals import STORY, events_in, started, time_of, write_quickly


def write(directory: Path, *lines: bytes) -> None:
    (directory / "journal.jsonl").write_bytes(b"".join(lines))


def test_a_whole_journal_is_read_and_proved(tmp_path: Path) -> None:
    write_quickly(tmp_path)
    content = read_journal(tmp_path)
    assert tuple(each.event for each in content.events) == STORY
    assert [each.seq for each in content.events] == list(range(len(STORY)))
    assert content.torn == b""
    report = verify_journal(tmp_path)
    assert report.ok
    assert report.events == len(STORY)
    assert report.head == content.head == content.events[-1].hash


def test_reading_writes_nothing(tmp_path: Path) -> None:
    *lines, last = write_quickly(tmp_path)
    write(tmp_path, *lines, last[:-9])
    before = {each.name for each in tmp_path.iterdir()}
    assert read_journal(tmp_path).torn == last[:-9]
    report = verify_journal(tmp_path)
    assert report.ok
    assert report.torn_bytes == len(last) - 9
    assert report.events == len(lines)
    assert {each.name for each in tmp_path.iterdir()} == before


def test_lines_of_another_order_are_named(tmp_path: Path) -> None:
    a, b, c, d, *rest = write_quickly(tmp_path)
    write(tmp_path, a, c, b, d, *rest)
    problems = verify_journal(tmp_path).problems
    assert [each.line for each in problems] == [2, 3, 4]
    assert str(problems[0]) == "line 2: seq is 2, 1 belongs here"


def test_a_line_that_is_missing_shows_once(tmp_path: Path) -> None:
    a, _, *rest = write_quickly(tmp_path)
    write(tmp_path, a, *rest)
    assert [each.line for each in verify_journal(tmp_path).problems] == [2]


def test_a_line_of_another_journal_is_named(tmp_path: Path) -> None:
    lines = write_quickly(tmp_path)
    body = encode_event(STORY[2])
    foreign, _ = encode_line(2, time_of(2), body[0], body[1], "f" * 64)
    write(tmp_path, *lines[:2], foreign, *lines[3:])
    problems = verify_journal(tmp_path).problems
    assert [each.line for each in problems] == [3, 4]
    assert "prev is ffffffffffff, the line before has" in problems[0].what


def test_every_problem_is_told(tmp_path: Path) -> None:
    lines = write_quickly(tmp_path)
    lines[1] = lines[1].replace(b"politeness", b"Politeness")
    lines[3] = b"garbage\n"
    write(tmp_path, *lines)
    report = verify_journal(tmp_path)
    assert not report.ok
    assert [each.line for each in report.problems] == [2, 4, 5]
    with pytest.raises(JournalError, match=r"journal\.jsonl: line 2: hash is"):
        read_journal(tmp_path)


@pytest.mark.parametrize("damage", ["missing", "changed", "link"])
def test_a_blob_that_is_not_as_written_is_named(damage: str, tmp_path: Path) -> None:
    write_quickly(tmp_path)
    (blob,) = (tmp_path / "blobs").iterdir()
    if damage == "changed":
        data = bytearray(blob.read_bytes())
        data[100] ^= 1
        blob.write_bytes(data)
    else:
        blob.rename(tmp_path / "elsewhere")
    if damage == "link":
        blob.symlink_to(tmp_path / "elsewhere")
    (problem,) = verify_journal(tmp_path).problems
    assert problem.line == 5
    assert blob.name in problem.what
    with pytest.raises(JournalError, match=f"line 5: blob {blob.name}"):
        read_journal(tmp_path)


def test_an_event_that_does_not_fit_its_class_is_named(tmp_path: Path) -> None:
    first, prev = encode_line(0, time_of(0), *encode_event(started()), "")
    write(tmp_path, first, encode_line(1, time_of(1), "session_resumed", {"torn_bytes": "many"}, prev)[0])
    assert verify_journal(tmp_path).problems == (
        Problem(2, "event session_resumed: torn_bytes: expected a whole number, found a text"),
    )


def test_a_newer_kind_of_event_says_so(tmp_path: Path) -> None:
    first, prev = encode_line(0, time_of(0), *encode_event(started()), "")
    write(tmp_path, first, encode_line(1, time_of(1), "moon_landed", {}, prev)[0])
    with pytest.raises(JournalError, match="line 2: unknown kind of event 'moon_landed'") as refused:
        read_journal(tmp_path)
    assert "newer version" in refused.value.advice


@pytest.mark.parametrize("events", [(e.RetryAsked(),), (started(), started())])
def test_a_header_stands_first_and_only_there(events: tuple[e.Event, ...], tmp_path: Path) -> None:
    write_quickly(tmp_path, events)
    assert [each.line for each in verify_journal(tmp_path).problems] == [len(events)]


def test_an_empty_journal_holds_nothing(tmp_path: Path) -> None:
    write(tmp_path)
    assert read_journal(tmp_path).events == ()
    assert read_journal(tmp_path).head == ""
    assert verify_journal(tmp_path).ok


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    for look in (read_journal, verify_journal):
        with pytest.raises(JournalError, match="there is no"):
            look(tmp_path)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    for look in (read_journal, verify_journal):
        with pytest.raises(StorageError, match="could not be read"):
            look(tmp_path)


def test_ten_thousand_events_are_verified_in_a_second(tmp_path: Path) -> None:
    step = (e.ActionStarted(ProposalId("p")), e.ActionFinished(ProposalId("p"), e.ActionResult.OK, "x" * 300, 0.5))
    write_quickly(tmp_path, (started(), *(step * 5000)))
    begun = time.process_time()  # other work on the machine does not count
    report = verify_journal(tmp_path)
    seconds = time.process_time() - begun
    assert report.ok
    assert report.events == 10_001
    assert seconds < 1.0
    assert len(events_in(tmp_path)) == 10_001
