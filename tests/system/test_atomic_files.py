import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.core.errors import StorageError
from agent_workbench.system.atomic_files import FileChanged, make_directories, storage_error, write_atomically

needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="machine lacks: a user whom permissions bind")


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    write_atomically(tmp_path / "new", b"one")
    assert (tmp_path / "new").read_bytes() == b"one"
    assert (tmp_path / "new").stat().st_mode == usual.stat().st_mode
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "usual"]


def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_bytes(b"old")
    path.chmod(0o751)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


@pytest.mark.skipif(os.geteuid() != 0, reason="machine lacks: the right to give files away")
def test_an_existing_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_through_a_link_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("there/target")
    write_atomically(link, b"new", expected=b"old")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_to_nothing_yet_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("later")
    write_atomically(tmp_path / "link", b"new", expected=None)
    assert (tmp_path / "later").read_bytes() == b"new"


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(StorageError, match="could not be written"):
        write_atomically(tmp_path / "a", b"new")


@pytest.mark.parametrize(
    ("there", "expected", "said"),
    [(b"theirs", b"mine", "changed"), (b"theirs", None, "changed"), (None, b"mine", "removed")],
)
def test_what_is_not_as_expected_stays(there: bytes | None, expected: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plan"
    if there is not None:
        path.write_bytes(there)
    with pytest.raises(FileChanged, match=said) as refused:
        write_atomically(path, b"new", expected=expected)
    assert refused.value.found == there
    assert (path.read_bytes() if path.exists() else None) == there
    assert len(list(tmp_path.iterdir())) == (there is not None)


def test_what_is_as_expected_is_written(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    write_atomically(path, b"one", expected=None)
    write_atomically(path, b"two", expected=b"one")
    assert path.read_bytes() == b"two"


def test_a_folder_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="folder could not be written"):
        write_atomically(tmp_path / "folder", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="absent"):
        write_atomically(tmp_path / "absent" / "file", b"new")


@needs_permissions
def test_a_folder_that_may_not_be_written_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError) as refused:
        write_atomically(tmp_path / "file", b"new")
    tmp_path.chmod(0o700)
    assert "permissions" in refused.value.advice


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "read-only"), (errno.EACCES, "permissions"), (errno.ENOENT, "")],
)
def test_advice_fits_the_cause(number: int, advice: str) -> None:
    error = storage_error("it", OSError(number, os.strerror(number)))
    assert str(error) == f"it: {os.strerror(number)}"
    assert advice in error.advice
    assert bool(error.advice) == bool(advice)


SMALL_DISK = """
import resource, sys
from pathlib import Path
from agent_workbench.core.errors import StorageError
from agent_workbench.system.atomic_files import write_atomically

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
path = Path(sys.argv[1])
try:
    write_atomically(path, b"x" * 5000)
except StorageError as error:
    print(error.advice)
write_atomically(path.with_name("small"), b"y" * 1000)
"""


def test_where_there_is_no_room_the_old_content_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", SMALL_DISK, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "ulimit" in done.stdout
    assert path.read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "small"]


KILLED = """
import itertools, sys
from pathlib import Path
from agent_workbench.system.atomic_files import write_atomically

print("ready", flush=True)
for number in itertools.count():
    write_atomically(Path(sys.argv[1]), bytes([number % 256]) * 300_000)
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for rounds in (2, 3, 5):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout
            for _ in range(rounds):
                child.stdout.readline()
            child.kill()
        content = path.read_bytes()
        assert len(content) == 300_000
        assert len(set(content)) == 1


def test_folders_are_made_and_may_be_there(tmp_path: Path) -> None:
    make_directories(tmp_path / "a" / "b")
    make_directories(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
