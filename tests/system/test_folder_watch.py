"""The watch over real folders: what it reports, and when it says that it cannot know."""

import mmap
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_workbench.system import folder_watch
from agent_workbench.system.folder_watch import FolderWatch, WatchLost

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file.py").write_text("x = 1\n")
    return folder


@pytest.fixture
def watch(root: Path) -> Iterator[FolderWatch]:
    found = FolderWatch(str(root))
    assert found.add(["", "deep"])
    assert not found.add(["deep"])
    yield found
    found.close()


def test_what_is_written_touched_made_moved_and_deleted_is_reported(root: Path, watch: FolderWatch) -> None:
    assert watch.changes() == set()
    (root / "deep" / "file.py").write_text("x = 2\n")
    assert watch.changes() == {"deep/file.py"}
    os.utime(root / "deep" / "file.py", (1, 1))
    assert watch.changes() == {"deep/file.py"}
    (root / "new\nname").write_bytes(b"")
    os.rename(root / "new\nname", root / "other")  # noqa: PTH104  one of two names
    assert watch.changes() == {"new\nname", "other"}
    (root / "other").unlink()
    (root / "fresh").mkdir()
    assert watch.changes() == {"other", "fresh"}
    assert watch.changes() == set()


def test_what_is_written_through_a_mapping_is_reported_when_it_is_closed(root: Path, watch: FolderWatch) -> None:
    with (root / "deep" / "file.py").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"y"
    assert watch.changes() == {"deep/file.py"}


def test_a_deleted_folder_that_comes_again_is_watched_again(root: Path, watch: FolderWatch) -> None:
    shutil.rmtree(root / "deep")
    (root / "deep").mkdir()
    assert "deep" in watch.changes()
    assert watch.add(["deep"])
    (root / "deep" / "file.py").write_text("x = 3\n")
    assert watch.changes() == {"deep/file.py"}


def test_after_a_moved_folder_nothing_is_known(root: Path, watch: FolderWatch) -> None:
    (root / "deep").rename(root / "deeper")
    with pytest.raises(WatchLost):
        watch.changes()


def test_after_the_root_is_gone_nothing_is_known(root: Path, watch: FolderWatch) -> None:
    shutil.rmtree(root)
    with pytest.raises(WatchLost):
        watch.changes()


def test_after_more_changes_than_the_kernel_keeps_nothing_is_known(root: Path, watch: FolderWatch) -> None:
    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(kept // 2 + 2):  # alternately, for equal events in a row are one
        os.utime(root / "deep" / "file.py", (number, number))
        os.utime(root / "deep", (number, number))
    with pytest.raises(WatchLost):
        watch.changes()


def test_links_are_not_followed_and_absent_folders_passed_over(root: Path, tmp_path: Path, watch: FolderWatch) -> None:
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    assert not watch.add(["absent"])
    with pytest.raises(WatchLost):
        watch.add(["link"])


def test_too_many_folders_are_not_watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watch, "_MAX_FOLDERS", 1)
    watch = FolderWatch(str(root))
    with pytest.raises(WatchLost):
        watch.add(["", "deep"])
    watch.close()


def test_a_file_system_that_others_write_to_is_not_watched(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setattr(folder_watch, "_LOCAL", frozenset({0x6969}))  # NFS
    with pytest.raises(WatchLost):
        FolderWatch(str(root))
