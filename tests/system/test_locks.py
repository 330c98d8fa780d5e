import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent_workbench.core.errors import LockedError, StorageError
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder

HOLDER = """
import sys, time
from pathlib import Path
from agent_workbench.system.locks import FileLock, describe_holder

with FileLock(Path(sys.argv[1]), describe_holder()):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def start_holder(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    assert child.stdout.readline() == "held\n"
    return child


def test_the_second_is_refused_and_told_who_is_first(path: Path) -> None:
    with start_holder(path) as child:
        with pytest.raises(LockedError, match=f"in use by pid {child.pid} on") as refused:
            FileLock(path, "second").acquire()
        assert f"pid {child.pid} " in refused.value.holder
        assert refused.value.advice
        assert lock_holder(path) == refused.value.holder
        child.communicate("\n")
    assert lock_holder(path) == ""
    with FileLock(path, "second"):
        assert lock_holder(path) == "second"


def test_the_lock_of_a_killed_process_is_free(path: Path) -> None:
    with start_holder(path) as child:
        child.kill()
    assert "pid" in path.read_text()
    assert lock_holder(path) == ""
    with FileLock(path, "next"):
        assert path.read_text() == "next"


def test_within_a_process_it_excludes_too(path: Path) -> None:
    with FileLock(path, "first"):
        with pytest.raises(LockedError) as refused:
            FileLock(path, "second").acquire()
        assert refused.value.holder == "first"
        assert path.read_text() == "first"


def test_one_lock_is_not_taken_twice(path: Path) -> None:
    lock = FileLock(path, "me")
    with lock, pytest.raises(LockedError):
        lock.acquire()
    with lock:
        pass
    lock.release()


def test_the_file_stays_when_the_lock_is_free(path: Path) -> None:
    with FileLock(path, "me"):
        inode = path.stat().st_ino
    assert path.read_bytes() == b""
    assert path.stat().st_ino == inode


def test_looking_does_not_keep_anybody_out(path: Path) -> None:
    path.touch()
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.002):
            lock_holder(path)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        for _ in range(100):
            with FileLock(path, "me"):
                pass
    finally:
        stop.set()
        looker.join()


def test_who_holds_nothing_is_nobody(tmp_path: Path) -> None:
    assert lock_holder(tmp_path / "absent") == ""
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(StorageError, match="could not be opened"):
        FileLock(tmp_path / "lock", "me").acquire()
    assert victim.read_text() == "precious"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="absent"):
        FileLock(tmp_path / "absent" / "lock", "me").acquire()


def test_a_holder_cannot_control_the_terminal(path: Path) -> None:
    with FileLock(path, "pid 1\x1b]52;c;AAAA\x07\n"):
        assert lock_holder(path) == "pid 1]52;c;AAAA"


def test_a_holder_is_described_by_process_and_host() -> None:
    assert describe_holder().startswith(f"pid {os.getpid()} on ")
    assert describe_holder().endswith("Z")
