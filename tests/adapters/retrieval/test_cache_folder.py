"""The cache's folder: for its user alone, within bounds, and cleared of what it was told to forget."""

import os
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.system.locks import FileLock


def repo(tmp_path: Path, name: str) -> str:
    root = tmp_path / name
    (root / ".git").mkdir(parents=True)
    return str(root)


def fill(cache: CacheFolder, root: str, age_seconds: float = 0.0) -> tuple[Path, Path]:
    """Keep a past and vectors for a repo as if so long ago; return where."""
    past, vectors = cache.history_of(root), cache.vectors_of(root)
    (vectors / "model").mkdir(parents=True)
    past.parent.mkdir(exist_ok=True)
    past.write_bytes(b"p" * 100)
    (vectors / "model" / "learnt.npz").write_bytes(b"v" * 10_000)
    (vectors / "lock").touch()
    then = past.stat().st_mtime - age_seconds
    for path in (past, vectors / "model", vectors / "lock", vectors):
        os.utime(path, (then, then))
    return past, vectors


def test_the_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    CacheFolder(folder).make_private()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    CacheFolder(folder).make_private()
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    CacheFolder(tmp_path / "file" / "below").make_private()


def test_clearing_a_repo_forgets_its_past_and_vectors_too_and_nothing_of_others(tmp_path: Path) -> None:
    cache = CacheFolder(tmp_path / "cache")
    one, other = repo(tmp_path, "one"), repo(tmp_path, "other")
    gone, stays = fill(cache, one), fill(cache, other)
    assert cache.clear(one) >= 10_000
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in stays)


def test_what_repos_keep_is_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.cache_folder.MAX_SHARED_BYTES", 25_000)
    cache = CacheFolder(tmp_path / "cache")
    kept = {
        name: fill(cache, repo(tmp_path, name), age) for name, age in (("own", 9e6), ("a", 10), ("b", 20), ("c", 30))
    }
    held = fill(cache, repo(tmp_path, "held"), 40)
    cache.snapshot_of(str(tmp_path / "own")).parent.mkdir(parents=True)
    with FileLock(held[1] / "lock", "a session"):
        os.utime(held[1] / "lock", (1, 1))
        cache.note(str(tmp_path / "own"))
    assert {name for name, (_, vectors) in kept.items() if vectors.exists()} == {"own", "a", "b"}
    assert held[1].exists()


def test_a_cache_of_an_older_form_goes_when_nobody_uses_it_any_more(tmp_path: Path) -> None:
    cache = CacheFolder(tmp_path / "cache")
    root = repo(tmp_path, "own")
    cache.snapshot_of(root).parent.mkdir(parents=True)
    old, new = (tmp_path / "cache" / f"chunks-{number}.sqlite" for number in (0, 999))
    old.touch()
    new.touch()
    os.utime(old, (1, 1))
    cache.note(root)
    assert (old.exists(), new.exists()) == (False, True)
