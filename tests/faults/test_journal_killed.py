"""G1: what was acknowledged is read back, whenever the writer is killed."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.errors import LockedError
from tests.faults import journal_child

CHILD = Path(journal_child.__file__)


@contextmanager
def child(*words: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(CHILD), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    line = process.stdout.readline()
    assert line, "the child ended by itself"
    return line.strip()


def last_acknowledged(process: subprocess.Popen[str], before: int) -> int:
    """Return the number of the last event that the killed child still told of."""
    assert process.stdout
    said = [line.split() for line in process.stdout.read().splitlines()]
    return max((int(words[1]) for words in said if words[0] == "acknowledged" and len(words) == 2), default=before)


def expect_all_up_to(directory: Path, acknowledged: int) -> None:
    events = read_journal(directory).events
    assert len(events) in (acknowledged + 1, acknowledged + 2)  # one may be on the disk without having been told
    assert [each.event for each in events] == [journal_child.event(seq) for seq in range(len(events))]
    assert verify_journal(directory).ok


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize("point", range(8))
def test_killed_after_each_acknowledgement(point: int, tmp_path: Path) -> None:
    with child("write", tmp_path) as process:
        while next_line(process) != f"acknowledged {point}":
            pass
        process.kill()
        acknowledged = last_acknowledged(process, point)
    expect_all_up_to(tmp_path, acknowledged)


@pytest.mark.slow
def test_killed_at_any_moment_again_and_again(tmp_path: Path) -> None:
    # The same journal each time, so that what one death leaves behind is what the next life starts from.
    moments = random.Random(20260102)
    acknowledged = -1
    for _ in range(12):
        with child("write", tmp_path) as process:
            _, recorded, torn_bytes = next_line(process).split()
            assert int(recorded) > acknowledged
            assert int(torn_bytes) >= 0
            deadline = time.monotonic() + moments.uniform(0, 0.06)
            acknowledged = int(recorded) - 1
            while time.monotonic() < deadline:
                acknowledged = int(next_line(process).split()[1])
            process.kill()
            acknowledged = last_acknowledged(process, acknowledged)
        expect_all_up_to(tmp_path, acknowledged)
    assert acknowledged > 0


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    with child("write", tmp_path) as process:
        while next_line(process) != "acknowledged 0":
            pass
        with pytest.raises(LockedError) as refused:
            JournalWriter.open_existing(tmp_path, Redactor({}))
        assert f"pid {process.pid} on " in refused.value.holder
        process.kill()
    with child("hold", tmp_path) as process:
        assert next_line(process).startswith("opened ")
        with pytest.raises(LockedError, match=f"pid {process.pid} on "):
            JournalWriter.open_existing(tmp_path, Redactor({}))


def test_reading_is_possible_while_somebody_writes(tmp_path: Path) -> None:
    with child("write", tmp_path) as process:
        for seq in range(20):
            while next_line(process) != f"acknowledged {seq}":
                pass
            assert len(read_journal(tmp_path).events) > seq
