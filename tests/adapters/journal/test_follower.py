"""A journal is followed while another process writes it: each event once, in order, and proved."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.reader import JournalFollower
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded
from tests.adapters.journal.journals import STORY, time_of, write_quickly
from tests.faults import journal_child

QUICK = 0.005
SECONDS = 20


@asynccontextmanager
async def following(directory: Path, after_seq: int = -1) -> AsyncIterator["Reader"]:
    async with aclosing(JournalFollower(directory, QUICK).events(after_seq)) as events:
        yield Reader(events)


class Reader:
    """Reads from a follower, for a bounded time."""

    def __init__(self, events: AsyncIterator[Recorded]) -> None:
        self._events = events

    async def next(self, count: int = 1) -> list[Recorded]:
        async with asyncio.timeout(SECONDS):
            return [await anext(self._events) for _ in range(count)]


@pytest.fixture
def written(tmp_path: Path) -> list[bytes]:
    """The lines of a journal in the test's folder."""
    return write_quickly(tmp_path, STORY)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


async def test_what_another_process_writes_comes_once_and_in_order(tmp_path: Path) -> None:
    directory = tmp_path / "session"
    command = [sys.executable, journal_child.__file__, "write", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        try:
            while not (directory / "journal.jsonl").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(QUICK)
            async with following(directory) as reader:
                found = await reader.next(30)
        finally:
            child.kill()
    assert [each.seq for each in found] == list(range(30))
    assert [each.event for each in found] == [journal_child.event(seq) for seq in range(30)]


@pytest.mark.usefixtures("written")
async def test_following_begins_behind_an_event(tmp_path: Path) -> None:
    async with following(tmp_path, after_seq=2) as reader:
        assert [each.seq for each in await reader.next(3)] == [3, 4, 5]


@pytest.mark.parametrize("cut", [1, 40, -1])
async def test_half_a_line_is_waited_for(written: list[bytes], tmp_path: Path, cut: int) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"".join(written[:3]) + written[3][:cut])
    async with following(tmp_path) as reader:
        assert len(await reader.next(3)) == 3
        append(journal, written[3][cut:])  # the half was seen behind the third event
        assert [each.seq for each in await reader.next()] == [3]


async def test_a_torn_line_that_is_cut_off_leaves_no_gap(written: list[bytes], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"".join(written[:3]) + b'{"v":1,"torn')
    async with following(tmp_path) as reader:
        await reader.next(3)
        os.truncate(journal, sum(map(len, written[:3])))
        append(journal, b"".join(written[3:5]))
        assert [each.seq for each in await reader.next()] == [3]
        assert [each.time for each in await reader.next()] == [time_of(4)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path, text: path.write_bytes(text.replace(b"T-1", b"T-2")), "hash is"),
        (lambda path, text: path.write_bytes(b"".join(text.splitlines(keepends=True)[1:])), "seq is 1, 0 belongs here"),
        (lambda path, text: path.write_bytes(text + text), "seq is 0"),
        (lambda path, text: path.unlink(), "there is no"),
    ],
    ids=["a changed line", "a missing line", "a repeated line", "no journal"],
)
async def test_what_does_not_prove_itself_ends_it(
    written: list[bytes], tmp_path: Path, change: object, why: str
) -> None:
    text = b"".join(written)
    assert callable(change)
    change(tmp_path / "journal.jsonl", text)
    async with following(tmp_path) as reader:
        with pytest.raises(JournalError, match=why):
            await reader.next(len(STORY) + 1)


@pytest.mark.parametrize("what", ["cut", "replaced", "removed"])
async def test_a_journal_that_is_changed_meanwhile_ends_it(written: list[bytes], tmp_path: Path, what: str) -> None:
    journal = tmp_path / "journal.jsonl"
    async with following(tmp_path) as reader:
        await reader.next(len(STORY))
        if what == "cut":
            journal.write_bytes(b"".join(written[:2]))
        elif what == "replaced":
            other = tmp_path / "other"
            other.write_bytes(b"".join(written))
            other.replace(journal)
        else:
            journal.unlink()
        with pytest.raises(JournalError):
            await reader.next()


@pytest.mark.usefixtures("written")
async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "journal.jsonl").symlink_to(tmp_path / "journal.jsonl")
    async with following(tmp_path / "session") as reader:
        with pytest.raises(Exception, match="symbolic link"):
            await reader.next()
