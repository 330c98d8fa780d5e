"""Which files are indexed, and what git calls their content."""

import subprocess
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.index.segments import blob_id
from agent_workbench.adapters.retrieval.indexable_files import (
    ExcludedPaths,
    FileStamp,
    count_left_out,
    count_submodules,
    is_searchable,
    stamp_files,
    within_bounds,
)


@pytest.mark.parametrize("data", [b"", b"x\n", b"\0\xff" * 1_000])
def test_content_has_the_name_that_git_gives_it(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    done = subprocess.run(["git", "hash-object", "--no-filters", str(file)], capture_output=True, text=True, check=True)
    assert blob_id(data) == done.stdout.strip()


def test_only_regular_files_that_are_not_excluded_are_stamped(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    (tmp_path / "large.py").write_bytes(b"x" * 400_001)
    (tmp_path / "limit.py").write_bytes(b"x" * 400_000)
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "gone.min.js").write_text("x")
    paths = ["a.py", "large.py", "limit.py", "link.py", "deep", "deep/gone.min.js", "absent", "nul\0", "\udcff"]
    now = (tmp_path / "a.py").stat().st_ctime_ns
    stamps = stamp_files(str(tmp_path), paths, ExcludedPaths(["**/*.min.js"]), now)
    assert list(stamps) == ["a.py", "large.py", "limit.py"]
    assert list(within_bounds(stamps)) == ["a.py", "limit.py"]
    assert count_left_out(str(tmp_path), paths, ExcludedPaths(())) == 1
    assert count_left_out(str(tmp_path), paths, ExcludedPaths(["large.*"])) == 0
    assert stamps["a.py"].fresh
    assert not stamp_files(str(tmp_path), paths, ExcludedPaths(()), now + 10**9)["a.py"].fresh


def test_submodules_are_counted_by_what_names_them(tmp_path: Path) -> None:
    assert count_submodules(str(tmp_path)) == 0
    (tmp_path / ".gitmodules").write_text('[submodule "a"]\n\tpath = a\n[submodule "b c"]\n\tpath = [submodule\n')
    assert count_submodules(str(tmp_path)) == 2


def test_of_too_many_files_source_is_kept_and_the_rest_left_out() -> None:
    stamps = {path: FileStamp(0, 0, 40, 0) for path in ["a.txt", "b.csv", "c.py", "d.go", "e.md"]}
    assert set(within_bounds(stamps, 1_000)) == set(stamps)
    assert list(within_bounds(stamps, 130)) == ["c.py", "d.go", "a.txt"]
    assert within_bounds(stamps, 10) == {}


@pytest.mark.parametrize(
    ("path", "held"),
    [
        *(
            (path, True)
            for path in (".env", "a/.env.local", "A.PEM", "b/server.key", "id_rsa", "c/id_rsa.pub", "k.p12")
        ),
        *((path, True) for path in ("a/.npmrc", ".pypirc", ".git-credentials", ".htpasswd", "id_ed25519", "id_dsa")),
        *((path, True) for path in ("k.pfx", "k.kdbx", "id_ecdsa.pub")),
        *((path, True) for path in (".netrc", "a/.ENV", ".env.example.local")),
        *((path, False) for path in (".env.example", "a/.env.sample", ".env.template", ".env/pip.py", "key.py", "env")),
    ],
)
def test_what_holds_secrets_by_its_name_is_never_indexed(path: str, held: bool) -> None:
    assert (path in ExcludedPaths(())) is held


def test_binary_content_is_no_text() -> None:
    assert is_searchable("a.py", "größe\n".encode())
    assert not is_searchable("a.py", b"a\0b")
    assert not is_searchable("a.py", b"a" * 400_001)
