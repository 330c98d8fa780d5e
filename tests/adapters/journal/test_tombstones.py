"""Tombstones: what is read of them, and what in their place is not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.session_store import MAX_BYTES, MOST_NAMED, Tombstones
from agent_workbench.core.errors import StorageError
from agent_workbench.core.history.leftovers import Tombstone
from agent_workbench.core.ids import SessionId

SESSION = SessionId("20260102T030405-abc234")
OTHER = SessionId("20260102T030405-zzz777")


def stone(*removed: str, journal: bool = False) -> Tombstone:
    return Tombstone(SESSION, removed, "2026-01-02T03:04:05+00:00", journal)


def test_a_record_is_read_back_and_grows(tmp_path: Path) -> None:
    stones = Tombstones(tmp_path / "tombstones")
    assert stones.of(SESSION) is None
    stones.bury(stone("agent/T-1", journal=True))
    stones.bury(stone("refs/agent/x", "agent/T-1"))
    assert stones.of(SESSION) == stone("agent/T-1", "refs/agent/x", journal=True)
    assert stones.of(OTHER) is None
    assert (tmp_path / "tombstones" / SESSION).stat().st_mode & 0o077 == 0
    stones.bury(stone(*map(str, range(1000))))
    found = stones.of(SESSION)
    assert found is not None
    assert (len(found.removed), found.removed[-1]) == (MOST_NAMED, "999")


def write_garbage(path: Path) -> None:
    path.write_bytes(b"\xff{")


def write_deep(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


def write_of_another(path: Path) -> None:
    Tombstones(path.parent).bury(Tombstone(OTHER, ("x",), "now", journal=True))
    (path.parent / OTHER).rename(path)


def write_huge(path: Path) -> None:
    path.write_bytes(b" " * (MAX_BYTES + 1) + b"{}")


def write_link(path: Path) -> None:
    Tombstones(path.parent).bury(stone("x", journal=True))
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize(
    "write", [write_garbage, write_deep, write_of_another, write_huge, write_link, os.mkfifo, Path.mkdir]
)
def test_what_is_no_record_excuses_nothing(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path / SESSION)
    assert Tombstones(tmp_path).of(SESSION) is None


def test_a_record_that_cannot_be_written_stops_the_removal(tmp_path: Path) -> None:
    (tmp_path / "tombstones").write_text("")
    with pytest.raises(StorageError):
        Tombstones(tmp_path / "tombstones").bury(stone("x"))
