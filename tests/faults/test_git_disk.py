"""A disk that takes no more, at every write: all is as it was, the error says so, and later it goes on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import User, make_home, make_repo, merge_as_shown
from tests.faults.git_scenes import CHANGES, LARGE, write_meanwhile

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(make_home(tmp_path / "home")))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    user = make_repo(tmp_path / "repo")
    (tmp_path / "base").write_text(user.head())
    return user


def play(scene: str, folder: Path, *before: str) -> None:
    command = [*before, sys.executable, "-m", "tests.faults.git_scenes", scene, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("scene", ["write", "checkpoint", "restore"])
def test_files_may_not_grow(scene: str, user: User, tmp_path: Path) -> None:
    before = fingerprint(user.root)
    play(scene, tmp_path)
    assert fingerprint(user.root) == before


async def large_merge(user: User, folder: Path) -> CommitId:
    """Do a task whose merge does not fit, and write its commit into the file `commit`."""
    workspace = await Repository(user.root, folder / "state").open(user.request())
    changes = [*CHANGES, FileChange("zz large", await workspace.read("zz large"), LARGE)]
    commit = await workspace.commit(await workspace.write(changes, workspace.facts.tree), "Done")
    await workspace.release(keep=False)
    (folder / "commit").write_text(commit)
    return commit


@pytest.mark.slow
async def test_a_merge_that_does_not_fit(user: User, tmp_path: Path) -> None:
    commit = await large_merge(user, tmp_path)
    user.write("untracked", "mine")
    before = fingerprint(user.root)
    play("merge", tmp_path)
    assert fingerprint(user.root) == before
    await merge_as_shown(Repository(user.root, tmp_path / "state"), commit, "Merge")
    assert user.git("status", "--porcelain") == "?? untracked"
    assert (user.root / "zz large").read_bytes() == LARGE.data


async def test_a_merge_that_does_not_fit_leaves_what_the_user_wrote_meanwhile(user: User, tmp_path: Path) -> None:
    await large_merge(user, tmp_path)
    copy = User(tmp_path / "copy")
    shutil.copytree(user.root, copy.root, symlinks=True)
    write_meanwhile(copy)
    play("merge_meanwhile", tmp_path)
    assert files_of(user) == files_of(copy)


async def test_a_file_that_cannot_be_restored_is_named_with_a_command_for_it_alone(user: User, tmp_path: Path) -> None:
    user.write("zz large", LARGE.data[::-1])
    user.write("other", "other")
    user.commit("Large")
    await large_merge(user, tmp_path)
    user.write("other", "mine")
    before = files_of(user)
    play("merge_for_good", tmp_path)
    assert files_of(user) != before
    command = (tmp_path / "advice").read_text().split("`")[1]
    subprocess.run(command, shell=True, cwd=user.root, check=True)
    assert files_of(user) == before


def files_of(user: User) -> dict[str, str]:
    return {name: what for name, what in fingerprint(user.root).items() if name.startswith("file ")}


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="machine lacks: setpriv, to be root without its powers",
)
@pytest.mark.parametrize("scene", ["read_only", "locked_up"])
def test_a_folder_may_not_be_written(scene: str, user: User, tmp_path: Path) -> None:
    powers = "-dac_override,-dac_read_search,-fowner"
    before = ("setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}") if os.geteuid() == 0 else ()
    play(scene, tmp_path, *before)


@pytest.mark.parametrize("position", range(len(CHANGES) + 1))
async def test_the_nth_move_fails(position: int, user: User, tmp_path: Path) -> None:
    workspace = await Repository(user.root, tmp_path / "state").open(user.request())
    (Path(workspace.facts.path) / "src/empty").mkdir()
    # The name is found to be too long only when the file is moved into place: its folder is not there before.
    impossible = FileChange("made/for/" + "x" * 300, None, FileContent(b"x"))
    changes = [*CHANGES[:position], impossible, *CHANGES[position:]]
    before = fingerprint(Path(workspace.facts.path))
    with pytest.raises(StorageError, match="nothing was changed"):
        await workspace.write(changes, workspace.facts.tree)
    after = fingerprint(Path(workspace.facts.path))
    assert {name: what for name, what in after.items() if name.startswith("file ")} == {
        name: what for name, what in before.items() if name.startswith("file ")
    }
    await workspace.write(CHANGES, workspace.facts.tree)


async def test_a_branch_that_cannot_be_moved_is_not_half_merged(user: User, tmp_path: Path) -> None:
    repository = Repository(user.root, tmp_path / "state")
    workspace = await repository.open(user.request())
    commit = await workspace.commit(await workspace.write(CHANGES, workspace.facts.tree), "Done")
    (user.root / ".git/refs/heads/main.lock").touch()
    before = fingerprint(user.root)
    with pytest.raises(Exception, match=r"main\.lock"):
        await merge_as_shown(repository, commit, "Merge")
    assert user.git("status", "--porcelain") == ""
    after = fingerprint(user.root)
    assert {name for name in before if before[name] != after.get(name)} <= {"git index"}
