"""G14: where there is no space the journal stays valid, and when there is space again it goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from tests.faults import journal_child

CHILD = Path(journal_child.__file__)


def starve(directory: Path, limit: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(CHILD), "starve", str(directory), str(limit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# Limits below, at and above the size of a blob (10 kB and more), and those that end within a line.
@pytest.mark.parametrize("limit", [0, 1, 300, 700, 701, 702, 1000, 1777, 5000, 12_000, 14_999])
@pytest.mark.slow(quick=2)
def test_a_write_that_fails_leaves_whole_lines(limit: int, tmp_path: Path) -> None:
    full, told, *rest = starve(tmp_path, limit)
    _, seq, size = full.split()
    assert "ulimit" in told
    assert rest == [f"still full {seq}"] * 3 + [f"acknowledged {seq}"]
    assert int(size) <= limit
    events = read_journal(tmp_path).events
    assert [each.event for each in events] == [journal_child.event(each) for each in range(int(seq) + 1)]
    report = verify_journal(tmp_path)
    assert report.ok
    assert report.torn_bytes == 0
    assert not list(tmp_path.glob("blobs/.*"))


@pytest.mark.slow
def test_the_limits_fall_within_lines_and_within_blobs(tmp_path: Path) -> None:
    # If the events changed in size, the limits above would all hit the same place.
    stopped_at = {limit: int(starve(tmp_path / str(limit), limit)[0].split()[1]) for limit in (0, 300, 1000, 14_999)}
    assert len(set(stopped_at.values())) >= 3


SMALL_DISK = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
MOUNTED = 'mount -t tmpfs -o size=96k none "$1" && shift && exec "$@"'


def test_on_a_full_disk_it_stops_and_with_space_it_goes_on(tmp_path: Path) -> None:
    try:
        tried = subprocess.run([*SMALL_DISK, MOUNTED, "sh", str(tmp_path), "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("machine lacks: unshare")
    if tried.returncode != 0:
        pytest.skip("machine lacks: a small disk of one's own (user namespaces)")
    words = [sys.executable, str(CHILD), "fill", str(tmp_path / "session")]
    done = subprocess.run(
        [*SMALL_DISK, MOUNTED, "sh", str(tmp_path), *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    full, before, after = done.stdout.splitlines()
    seq = int(full.split()[1])
    assert "free some space" in full
    assert before == f"ok {seq} 0"
    assert after == f"ok {seq + 1} 0"
