import fcntl
import os
from pathlib import Path

import pytest

from agent_workbench.core.errors import StorageError
from agent_workbench.system import repo_files as inside
from agent_workbench.system.repo_files import change_inside, read_inside, resolve_inside


def test_a_folder_that_stays_locked_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "LOCK_SECONDS", 0.05)
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(StorageError, match=r"stayed locked by another process for 0\.05 s"):
        change_inside(tmp_path, "file", 10, lambda _: b"new")
    os.close(other)
    change_inside(tmp_path, "file", 10, lambda _: b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_what_leads_out_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    (root / "circle").symlink_to("circle")
    for name in ("../x", "link/x", "link", str(tmp_path / "x")):
        with pytest.raises(StorageError, match=", outside /"):
            resolve_inside(root, name)
        with pytest.raises(StorageError, match=", outside /"):
            change_inside(root, name, 10, lambda _: b"")
    with pytest.raises(StorageError):
        read_inside(root, "circle/x", 10)
    assert not (tmp_path / "x").exists()


def test_a_link_to_git_s_own_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / ".git/config").write_text("url = https://user:token@example.org")
    (tmp_path / "fix.md").symlink_to(".git/config")
    (tmp_path / "scratch").symlink_to(".git/refs/heads")
    (tmp_path / "settings").symlink_to(".git/index.lock")
    with pytest.raises(StorageError, match="which is git's own"):
        read_inside(tmp_path, "fix.md", 100)
    for name in ("scratch/T-1.md", "settings", ".GIT/x"):
        with pytest.raises(StorageError, match="which is git's own"):
            change_inside(tmp_path, name, 100, lambda _: b"x")
    assert sorted(each.name for each in (tmp_path / ".git").rglob("*")) == ["config", "heads", "refs"]


def test_a_link_inside_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    change_inside(tmp_path, "link", 10, lambda found: (found or b"") + b"+")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"old+"


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(b"12345")
    assert read_inside(tmp_path, "none", 4) is None
    assert read_inside(tmp_path, "big", 5) == b"12345"
    with pytest.raises(StorageError, match="big has 5 bytes; the limit is 4"):
        read_inside(tmp_path, "big", 4)
    for name in ("pipe", "."):
        with pytest.raises(StorageError, match="is not a regular file"):
            read_inside(tmp_path, name, 4)


def test_a_change_in_between_is_seen_and_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "folder/file"
    seen = []

    def change(found: bytes | None) -> bytes:
        seen.append(found)
        if len(seen) == 1:
            file.write_bytes(b"theirs ")
        return (found or b"") + b"ours"

    change_inside(tmp_path, "folder/file", 100, change)
    assert seen == [None, b"theirs "]
    assert file.read_bytes() == b"theirs ours"
    assert [each.name for each in file.parent.iterdir()] == ["file"]


def test_a_file_that_never_rests_is_given_up(tmp_path: Path) -> None:
    file = tmp_path / "file"

    def change(found: bytes | None) -> bytes:
        file.write_bytes((found or b"") + b"x")
        return b"ours"

    with pytest.raises(StorageError, match="another program changed"):
        change_inside(tmp_path, "file", 100, change)
    assert file.read_bytes() == b"x" * 10


def test_nothing_is_written_where_nothing_changes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"same")
    before = file.stat().st_ino
    change_inside(tmp_path, "file", 10, lambda found: found)
    change_inside(tmp_path, "file", 10, lambda _: None)
    assert file.stat().st_ino == before
