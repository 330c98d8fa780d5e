"""Which session is taken up: only one that was begun here, unfinished, and whole."""

import asyncio
import shutil
from pathlib import Path

import pytest
from msgspec import Struct

from agent_workbench.adapters.journal.session_store import LocalSessionStore
from agent_workbench.core.errors import JournalError, LockedError, TrustError, UsageError
from agent_workbench.core.events import SessionLeft
from agent_workbench.core.history.summaries import SessionQuery, was_killed_when_done
from agent_workbench.core.ids import SessionId, TaskId
from tests.adapters.journal.journals import NO_SECRETS, STORY, append_all, started, time_of, write_quickly

T1, T2 = TaskId("T-1"), TaskId("T-2")
UNFINISHED = STORY[1:-1]
OLD, NEW = SessionId("20260102T030405-abc234"), SessionId("20260103T030405-def567")


class GivenIds(Struct):
    """`core.ports.machine.Ids` that gives what it was given."""

    given: SessionId

    def session(self) -> SessionId:
        return self.given


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "repo"


@pytest.fixture
def sessions(folder: Path, tmp_path: Path) -> LocalSessionStore:
    return store(folder, tmp_path / "state")


def store(folder: Path, registry: Path, fresh: SessionId = NEW) -> LocalSessionStore:
    """Return the sessions in a folder; the next new one is called `fresh`."""
    return LocalSessionStore(folder, registry, GivenIds(fresh), lambda: NO_SECRETS)


async def begun(folder: Path, name: SessionId = OLD, *, whole: bool = False) -> SessionId:
    """Begin a session here and leave it with T-1 started (`whole`: finished)."""
    opened = await store(folder, folder.parent / "state", name).open(SessionQuery(fresh=True))
    assert (opened.id, opened.events, opened.torn_bytes, opened.fresh) == (name, (), 0, True)
    await append_all(opened.journal, (started(name), *(STORY[1:] if whole else UNFINISHED)))
    await opened.journal.close()
    return name


async def test_what_was_begun_here_is_taken_up(sessions: LocalSessionStore, folder: Path) -> None:
    await begun(folder)
    for wanted in (
        SessionQuery(),
        SessionQuery(OLD),
        SessionQuery(OLD[-6:]),
        SessionQuery(tasks=(T1,)),
        SessionQuery(tasks=(T2, T1)),
    ):
        assert await sessions.find(wanted) == OLD
    opening = await sessions.open(SessionQuery())
    assert opening.id == OLD
    assert [each.event for each in opening.events] == [started(OLD), *UNFINISHED]
    assert await sessions.find(SessionQuery()) is None, "somebody has it open"
    with pytest.raises(LockedError):
        await sessions.open(SessionQuery(OLD))
    await opening.journal.close()


async def test_what_is_not_wanted_is_left_alone(sessions: LocalSessionStore, folder: Path) -> None:
    await begun(folder)
    assert await sessions.find(SessionQuery(fresh=True)) is None
    assert await sessions.find(SessionQuery(tasks=(T2,))) is None
    with pytest.raises(UsageError, match="no session begins with 'xyz'"):
        await sessions.find(SessionQuery("xyz"))


async def test_the_newest_unfinished_one_is_taken_up(sessions: LocalSessionStore, folder: Path) -> None:
    await begun(folder)
    newest = await begun(folder, NEW)
    assert await sessions.find(SessionQuery()) == newest


async def test_a_finished_one_is_not_taken_up_by_itself(sessions: LocalSessionStore, folder: Path) -> None:
    await begun(folder, whole=True)
    assert await sessions.find(SessionQuery()) is None
    assert await sessions.find(SessionQuery(OLD)) == OLD


async def test_one_that_was_killed_when_its_task_was_done_is_known(sessions: LocalSessionStore, folder: Path) -> None:
    await begun(folder, whole=True)
    assert was_killed_when_done(await sessions.summaries(), (T1,))
    assert not was_killed_when_done(await sessions.summaries(), (T2,))
    opening = await sessions.open(SessionQuery(OLD))
    assert not was_killed_when_done(await sessions.summaries(), (T1,)), "somebody has it open"
    await opening.journal.append(len(opening.events), "now", SessionLeft("ended"))
    await opening.journal.close()
    assert not was_killed_when_done(await sessions.summaries(), (T1,)), "it was left in order"


async def test_a_journal_that_came_with_the_repo_is_replayed_and_no_more(
    sessions: LocalSessionStore, folder: Path, tmp_path: Path
) -> None:
    brought = tmp_path / "repo" / OLD
    await asyncio.to_thread(write_quickly, brought, (started(OLD), *UNFINISHED))
    assert await sessions.find(SessionQuery()) is None
    assert await sessions.find(SessionQuery(tasks=(T1,))) is None
    with pytest.raises(TrustError, match="was not begun here") as refused:
        await sessions.open(SessionQuery(OLD))
    assert "agent replay" in refused.value.advice
    assert len(await sessions.read(OLD)) == len(STORY) - 1
    opening = await sessions.open(SessionQuery())
    assert opening.id == NEW
    await opening.journal.close()


async def test_a_folder_that_was_moved_or_copied_is_not_ours(
    sessions: LocalSessionStore, folder: Path, tmp_path: Path
) -> None:
    await begun(folder)
    shutil.copytree(tmp_path / "repo", tmp_path / "clone")
    elsewhere = store(tmp_path / "clone", tmp_path / "state")
    assert await elsewhere.find(SessionQuery()) is None
    with pytest.raises(TrustError):
        await elsewhere.find(SessionQuery(OLD))
    assert await sessions.find(SessionQuery()) is not None


async def test_a_name_of_ours_does_not_vouch_for_what_stands_elsewhere(
    sessions: LocalSessionStore, folder: Path, tmp_path: Path
) -> None:
    await begun(folder)
    away = tmp_path / "away"
    (folder / OLD).rename(away)
    (folder / OLD).symlink_to(away)
    assert await sessions.find(SessionQuery()) is None


@pytest.mark.parametrize("line", [0, 2, -1], ids=["first", "task", "last"])
async def test_a_damaged_unfinished_one_is_not_passed_over_in_silence(
    sessions: LocalSessionStore, folder: Path, line: int
) -> None:
    await begun(folder)
    journal = folder / OLD / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"2026", b"2025", 1)
    journal.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=f"session {OLD} may be unfinished") as refused:
        await sessions.open(SessionQuery())
    assert f"agent sessions verify {OLD}" in refused.value.advice
    assert "--new" in refused.value.advice
    if line != 2:
        assert await sessions.find(SessionQuery(tasks=(T2,))) is None, "it was at another task"

    await begun(folder, NEW, whole=True)
    assert await sessions.find(SessionQuery()) is None, "whoever began another one has heard of it"


async def test_a_session_that_was_killed_before_its_first_line_hinders_nobody(
    sessions: LocalSessionStore, folder: Path
) -> None:
    opening = await sessions.open(SessionQuery())
    await opening.journal.close()
    assert await sessions.find(SessionQuery()) is None


async def test_a_fork_is_ours_and_taken_up_when_it_is_whole(sessions: LocalSessionStore, folder: Path) -> None:
    await begun(folder, whole=True)
    child, journal = sessions.fork()

    await journal.write([(0, time_of(0), started(NEW)), (1, time_of(1), UNFINISHED[0])])
    assert [each.id for each in await sessions.summaries()] == [OLD], "it is no session yet"
    await journal.keep(2, time_of(2), UNFINISHED[1])
    assert [(each.id, each.ours) for each in await sessions.summaries()] == [(NEW, True), (OLD, True)]
    assert await sessions.find(SessionQuery()) == child
    assert (await sessions.verify(child)).ok
