"""The commits of the past, and the user's own files, as the code search reads them from a real repository."""

import os
from pathlib import Path

import pytest

from agent_workbench.adapters.git import stored_commits as past
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import PastCommit
from tests.adapters.git.user import User


async def test_commits_come_newest_first_with_every_path_they_touched(user: User, repository: Repository) -> None:
    user.write("\nodd\nname", "1\n")
    user.write(os.fsdecode(b"gr\xfc\xdfe.txt"), "1\n")
    second = user.commit("Say ä\n\nwith a body")
    user.git("mv", "src/app.py", "src/moved.py")
    third = user.commit("Move")
    own: Sources = await repository.checkout_files()
    found = await own.past_commits(9)
    assert [(each.id, each.message) for each in found[:2]] == [(third, "Move"), (second, "Say ä\n\nwith a body")]
    assert set(found[0].paths) == {"src/app.py", "src/moved.py"}
    assert set(found[1].paths) == {"\nodd\nname", "gr\udcfc\udcdfe.txt"}
    assert (found[2].message, found[2].paths) == ("Start", ())
    assert await own.past_commits(1) == found[:1]
    assert await own.past_commits(9, second) == found[:1]
    assert await own.past_commits(9, third) == ()
    assert await own.past_commits(9, "f" * 40) == ()


async def test_a_long_past_is_asked_for_in_slices_and_ends_where_it_says_too_much(
    user: User, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        user.write("src/app.py", f"{number}\n")
        user.commit(f"Change {number}")
    own = await repository.checkout_files()
    whole = await own.past_commits(9)
    monkeypatch.setattr(past, "_ASKED_AT_ONCE", 2)
    assert await own.past_commits(9) == whole
    assert await own.past_commits(3) == whole[:3]
    assert await own.past_commits(9, whole[3].id) == whole[:3]
    monkeypatch.setattr(past, "_MOST_BYTES", 1)
    assert await own.past_commits(9) == whole[:2]


async def test_a_merge_is_left_out_and_what_it_brought_is_not(user: User, repository: Repository) -> None:
    user.git("checkout", "--quiet", "-b", "side")
    user.write("side.py", "1\n")
    side = user.commit("On the side")
    user.git("checkout", "--quiet", "main")
    user.write("main.py", "1\n")
    user.commit("On main")
    user.git("merge", "--quiet", "--no-edit", "side")
    found = await (await repository.checkout_files()).past_commits(9)
    assert {each.message for each in found} == {"On the side", "On main", "Start"}
    assert PastCommit(side, "On the side", ("side.py",)) in found


async def test_neither_configuration_nor_a_shallow_clone_leads_astray(user: User, tmp_path: Path) -> None:
    user.write("src/app.py", "2\n")
    second = user.commit("Second")
    user.write("src/app.py", "3\n")
    third = user.commit("Third")
    clone = User(tmp_path / "clone")
    clone.git("clone", "--quiet", "--depth", "2", f"file://{user.root}", ".")
    for name, value in (("log.showSignature", "true"), ("color.ui", "always"), ("i18n.logOutputEncoding", "UTF-16")):
        clone.git("config", name, value)
    found = await (await Repository(clone.root, tmp_path / "state").checkout_files()).past_commits(9)
    assert found == (PastCommit(third, "Third", ("src/app.py",)), PastCommit(second, "Second", ()))


async def test_a_repository_without_a_commit_has_no_past(tmp_path: Path) -> None:
    user = User(tmp_path / "new")
    user.git("init", "--quiet")
    user.write("a.py", "1\n")
    own = await Repository(user.root, tmp_path / "state").checkout_files()
    assert await own.past_commits(9) == ()
    assert await own.list_files() == ("a.py",)


@pytest.mark.usefixtures("untouched")
async def test_a_workspace_knows_the_commits_before_its_task(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    try:
        assert [each.id for each in await workspace.past_commits(9)] == [CommitId(user.head())]
    finally:
        await workspace.release(keep=False)


async def test_own_files_are_tracked_and_untracked_ones_as_they_stand(user: User, repository: Repository) -> None:
    inner = User(user.root / "inner")
    inner.git("init", "--quiet")
    inner.write("hidden.py", "1\n")
    user.write(".gitignore", "ignored.py\n")
    user.write("ignored.py", "1\n")
    user.write("new file\n.py", "new\n")
    user.write(os.fsdecode(b"b\xff.py"), b"\xff\n")
    user.write("src/app.py", "edited\n")
    (user.root / "link.py").symlink_to("src/app.py")
    (user.root / "README.md").unlink()
    own = await repository.checkout_files()
    assert own.root == str(user.root)
    paths = await own.list_files()
    assert set(paths) - {"README.md"} == {".gitignore", "new file\n.py", "b\udcff.py", "src/app.py", "link.py"}
    read = await own.read_files([*paths, "../outside", "inner/hidden.py\0"])
    assert read == {
        ".gitignore": b"ignored.py\n",
        "new file\n.py": b"new\n",
        "b\udcff.py": b"\xff\n",
        "src/app.py": b"edited\n",
    }
