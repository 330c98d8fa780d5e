import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_workbench.system.user_dirs import cache_dir, config_dir, repo_key, state_dir


@pytest.mark.parametrize(
    ("variable", "folder"),
    [("XDG_STATE_HOME", state_dir), ("XDG_CACHE_HOME", cache_dir), ("XDG_CONFIG_HOME", config_dir)],
)
def test_the_environment_moves_our_folders(
    variable: str, folder: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    assert folder() == tmp_path / "agent-workbench"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["", "relative/place"])
def test_a_folder_that_is_not_absolute_is_ignored(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    for folder in (state_dir(), cache_dir(), config_dir()):
        assert folder.is_relative_to(tmp_path)
        assert "agent-workbench" in folder.parts
    assert state_dir() != cache_dir()


@pytest.mark.parametrize("home", ["", ".", "here", None])
def test_no_folder_is_relative_to_the_repo(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert all(folder().is_absolute() for folder in (state_dir, cache_dir, config_dir))


def test_a_repo_is_named_after_its_folder(tmp_path: Path) -> None:
    name, _, digest = repo_key(str(tmp_path / "my shop" / ".git")).rpartition("-")
    assert name == "my-shop"
    assert len(digest) == 12
    assert repo_key(str(tmp_path / "shop.git")).startswith("shop-")


@pytest.mark.parametrize("name", ["", "…", "-.-", "a" * 200, "a\nb", "\udcff"])
def test_every_name_makes_a_folder_name(name: str, tmp_path: Path) -> None:
    key = repo_key(str(tmp_path / name / ".git"))
    (tmp_path / key).mkdir()
    assert len(key) <= 53
    assert key[0] not in ".-"
    assert key.isascii()
    assert key.isprintable()


def test_repos_of_one_name_differ_and_ways_to_one_repo_do_not(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "app" / ".git", tmp_path / "there" / "app" / ".git"
    here.mkdir(parents=True)
    there.mkdir(parents=True)
    (tmp_path / "link").symlink_to(here.parent.parent)
    assert repo_key(str(here)) != repo_key(str(there))
    assert repo_key(str(tmp_path / "link" / "app" / ".git")) == repo_key(str(here))


def test_importing_loads_no_library() -> None:
    probe = "import sys, agent_workbench.system.user_dirs; print('platformdirs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
