"""Which session is taken up: only one that was begun here, unfinished, and whole."""

import asyncio
import shutil
from pathlib import Path

import pytest
from msgspec import Struct

from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.adapters.journal.session_store import Sessions, Wanted
from agent_workbench.core.errors import JournalError, LockedError, TrustError, UsageError
from agent_workbench.core.events import SessionLeft
from agent_workbench.core.ids import SessionId, TaskId
from tests.adapters.journal.journals import NO_SECRETS, STORY, append_all, started, time_of, write_quickly

T1, T2 = TaskId("T-1"), TaskId("T-2")
UNFINISHED = STORY[1:-1]
OLD, NEW = SessionId("20260102T030405-abc234"), SessionId("20260103T030405-def567")


class GivenIds(Struct):
    """`core.ports.Ids` that gives what it was given."""

    given: SessionId

    def session(self) -> SessionId:
        return self.given


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "repo", tmp_path / "state")


def begun(sessions: Sessions, name: SessionId = OLD, *, whole: bool = False) -> Path:
    """Begin a session here, leave it with T-1 started (`whole`: finished), and return its folder."""
    opening = sessions.open(GivenIds(name), NO_SECRETS, Wanted(fresh=True))
    assert (opening.session, opening.events, opening.torn_bytes) == (name, (), 0)

    async def tell() -> None:
        await append_all(opening.writer, (started(name), *(STORY[1:] if whole else UNFINISHED)))
        await opening.writer.close()

    asyncio.run(tell())
    found = sessions.find(Wanted(name))
    assert found is not None
    return found


def test_what_was_begun_here_is_taken_up(sessions: Sessions) -> None:
    folder = begun(sessions)
    for wanted in (Wanted(), Wanted(OLD), Wanted(OLD[-6:]), Wanted(tasks=(T1,)), Wanted(tasks=(T2, T1))):
        assert sessions.find(wanted) == folder
    opening = sessions.open(GivenIds(NEW), NO_SECRETS, Wanted())
    assert opening.session == OLD
    assert [each.event for each in opening.events] == [started(OLD), *UNFINISHED]
    assert sessions.find(Wanted()) is None, "somebody has it open"
    with pytest.raises(LockedError):
        sessions.open(GivenIds(NEW), NO_SECRETS, Wanted(OLD))
    asyncio.run(opening.writer.close())


def test_what_is_not_wanted_is_left_alone(sessions: Sessions) -> None:
    begun(sessions)
    assert sessions.find(Wanted(fresh=True)) is None
    assert sessions.find(Wanted(tasks=(T2,))) is None
    with pytest.raises(UsageError, match="no session begins with 'xyz'"):
        sessions.find(Wanted("xyz"))


def test_the_newest_unfinished_one_is_taken_up(sessions: Sessions) -> None:
    begun(sessions)
    newest = begun(sessions, NEW)
    assert sessions.find(Wanted()) == newest


def test_a_finished_one_is_not_taken_up_by_itself(sessions: Sessions) -> None:
    folder = begun(sessions, whole=True)
    assert sessions.find(Wanted()) is None
    assert sessions.find(Wanted(OLD)) == folder


def test_one_that_was_killed_when_its_task_was_done_is_known(sessions: Sessions) -> None:
    begun(sessions, whole=True)
    assert sessions.was_killed_when_done((T1,))
    assert not sessions.was_killed_when_done((T2,))
    opening = sessions.open(GivenIds(NEW), NO_SECRETS, Wanted(OLD))
    assert not sessions.was_killed_when_done((T1,)), "somebody has it open"
    asyncio.run(opening.writer.append(len(opening.events), "now", SessionLeft("ended")))
    asyncio.run(opening.writer.close())
    assert not sessions.was_killed_when_done((T1,)), "it was left in order"


def test_a_journal_that_came_with_the_repo_is_replayed_and_no_more(sessions: Sessions, tmp_path: Path) -> None:
    brought = tmp_path / "repo" / OLD
    write_quickly(brought, (started(OLD), *UNFINISHED))
    assert sessions.find(Wanted()) is None
    assert sessions.find(Wanted(tasks=(T1,))) is None
    with pytest.raises(TrustError, match="was not begun here") as refused:
        sessions.open(GivenIds(NEW), NO_SECRETS, Wanted(OLD))
    assert "agent replay" in refused.value.advice
    assert len(read_journal(brought).events) == len(STORY) - 1
    opening = sessions.open(GivenIds(NEW), NO_SECRETS, Wanted())
    assert opening.session == NEW
    asyncio.run(opening.writer.close())


def test_a_folder_that_was_moved_or_copied_is_not_ours(sessions: Sessions, tmp_path: Path) -> None:
    begun(sessions)
    shutil.copytree(tmp_path / "repo", tmp_path / "clone")
    elsewhere = Sessions(tmp_path / "clone", tmp_path / "state")
    assert elsewhere.find(Wanted()) is None
    with pytest.raises(TrustError):
        elsewhere.find(Wanted(OLD))
    assert sessions.find(Wanted()) is not None


def test_a_name_of_ours_does_not_vouch_for_what_stands_elsewhere(sessions: Sessions, tmp_path: Path) -> None:
    folder = begun(sessions)
    away = tmp_path / "away"
    folder.rename(away)
    folder.symlink_to(away)
    assert sessions.find(Wanted()) is None


@pytest.mark.parametrize("line", [0, 2, -1], ids=["first", "task", "last"])
def test_a_damaged_unfinished_one_is_not_passed_over_in_silence(sessions: Sessions, line: int) -> None:
    folder = begun(sessions)
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"2026", b"2025", 1)
    journal.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=f"session {OLD} may be unfinished") as refused:
        sessions.open(GivenIds(NEW), NO_SECRETS, Wanted())
    assert f"agent sessions verify {OLD}" in refused.value.advice
    assert "--new" in refused.value.advice
    if line != 2:
        assert sessions.find(Wanted(tasks=(T2,))) is None, "it was at another task"

    begun(sessions, NEW, whole=True)
    assert sessions.find(Wanted()) is None, "whoever began another one has heard of it"


def test_a_session_that_was_killed_before_its_first_line_hinders_nobody(sessions: Sessions) -> None:
    opening = sessions.open(GivenIds(OLD), NO_SECRETS, Wanted())
    asyncio.run(opening.writer.close())
    assert sessions.find(Wanted()) is None


def test_a_fork_is_ours_and_taken_up_when_it_is_whole(sessions: Sessions) -> None:
    begun(sessions, whole=True)
    child, journal = sessions.fork(GivenIds(NEW), NO_SECRETS)

    asyncio.run(journal.write([(0, time_of(0), started(NEW)), (1, time_of(1), UNFINISHED[0])]))
    assert [each.id for each in sessions.summaries()] == [OLD], "it is no session yet"
    asyncio.run(journal.keep(2, time_of(2), UNFINISHED[1]))
    assert [(each.id, each.ours) for each in sessions.summaries()] == [(NEW, True), (OLD, True)]
    assert sessions.find(Wanted()) == sessions.find_ours(child)
    assert verify_journal(sessions.find_ours(child)).ok
