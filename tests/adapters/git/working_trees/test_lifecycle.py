"""Whose branch and whose folder: opening, opening again, rebuilding, refusing."""

import asyncio
import shutil
from pathlib import Path

import pytest

from agent_workbench.adapters.git.folders import linked_names
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import LockedError, RepoError, WorkspaceError
from agent_workbench.core.history.leftovers import SessionFacts
from agent_workbench.core.ids import TaskId
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.workspace import Reset
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import OTHER_SESSION, SESSION, TASK, User, commit_task, make_repo, merge_as_shown

NEW = FileChange("new", None, FileContent(b"new"))


@pytest.mark.usefixtures("untouched")
async def test_a_task_is_worked_on_by_one_session(user: User, repository: Repository, worktrees: Path) -> None:
    workspace = await repository.open(user.request())
    with pytest.raises(LockedError, match=f"T-1 is being worked on by session {SESSION}, pid ") as error:
        await Repository(user.root, worktrees).open(user.request(session=OTHER_SESSION, branch="agent/T-1-xy3zab"))
    assert SESSION in error.value.holder
    await workspace.release(keep=True)
    other = await repository.open(user.request(session=OTHER_SESSION, branch="agent/T-1-xy3zab"))
    await other.release(keep=False)


@pytest.mark.usefixtures("untouched")
async def test_the_lock_is_given_back_when_opening_fails(user: User, repository: Repository) -> None:
    with pytest.raises(WorkspaceError, match="is not a commit"):
        await repository.open(user.request(base="0" * 40))
    await repository.open(user.request())


@pytest.mark.usefixtures("untouched")
async def test_opening_again_finds_everything_as_it_was(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    tree = await workspace.write([NEW], workspace.facts.tree)
    point = await workspace.checkpoint(SESSION, 3, "x")
    Path(workspace.facts.path, "unsaved").write_text("x")
    await workspace.release(keep=True)
    again = await repository.open(user.request())
    assert not again.facts.rebuilt
    assert await again.list_files() == ("README.md", "new", "src/app.py", "unsaved")
    assert [change.path for change in await again.unapproved_changes(tree)] == ["unsaved"]
    following = await again.checkpoint(SESSION, 5, "y")
    assert user.git("rev-parse", f"{following.commit}^") == point.commit


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("lost", ["tree", "state"])
async def test_a_worktree_that_is_gone_is_rebuilt(
    lost: str, user: User, repository: Repository, worktrees: Path
) -> None:
    workspace = await repository.open(user.request())
    await workspace.write([NEW], workspace.facts.tree)
    await workspace.checkpoint(SESSION, 3, "x")
    await workspace.release(keep=True)
    shutil.rmtree(workspace.facts.path if lost == "tree" else worktrees)
    again = await repository.open(user.request())
    assert again.facts.rebuilt
    assert await again.read("new") == NEW.after
    status = User(Path(again.facts.path)).git("status", "--porcelain")
    assert status == "?? new"


@pytest.mark.usefixtures("untouched")
async def test_a_worktree_without_a_checkpoint_is_rebuilt_from_its_branch(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    await workspace.commit(await workspace.write([NEW], workspace.facts.tree), "Add new")
    await workspace.release(keep=True)
    shutil.rmtree(workspace.facts.path)
    again = await repository.open(user.request())
    assert again.facts.rebuilt
    assert await again.unapproved_changes(again.facts.tree) == ()
    assert await again.read("new") == NEW.after


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("what", ["file", "folder", "link", "nothing"])
async def test_a_replaced_git_file_changes_nothing(
    what: str, user: User, repository: Repository, tmp_path: Path
) -> None:
    workspace = await repository.open(user.request())
    evil = User(tmp_path / "evil")
    evil.git("init", "--quiet")
    pointer = Path(workspace.facts.path) / ".git"
    pointer.unlink()
    match what:
        case "file":
            pointer.write_text(f"gitdir: {evil.root}/.git\n")
        case "folder":
            shutil.copytree(evil.root / ".git", pointer)
        case "link":
            pointer.symlink_to(evil.root / ".git")
    tree = await workspace.write([NEW], workspace.facts.tree)
    assert await workspace.unapproved_changes(tree) == ()
    point = await workspace.checkpoint(SESSION, 1, "x")
    await workspace.restore(point.commit)
    commit = await workspace.commit(tree, "Add new")
    assert user.git("ls-tree", "--name-only", commit).split() == ["README.md", "new", "src"]
    await workspace.release(keep=True)
    again = await repository.open(user.request())
    assert User(Path(again.facts.path)).git("rev-parse", "HEAD") == commit
    await again.release(keep=False)
    assert evil.git("for-each-ref") == ""


async def test_a_branch_named_agent(user: User, repository: Repository) -> None:
    user.git("branch", "agent")
    for act in (repository.free_branch(TASK, SESSION), repository.open(user.request())):
        with pytest.raises(WorkspaceError, match="a branch named agent") as error:
            await act
        assert "git branch -m agent" in error.value.advice


async def test_the_first_branch_is_plain_and_later_ones_are_not(user: User, repository: Repository) -> None:
    assert await repository.free_branch(TASK, SESSION) == "agent/T-1"
    workspace = await repository.open(user.request())
    assert await repository.free_branch(TASK, OTHER_SESSION) == "agent/T-1-xy3zab"
    assert await repository.free_branch(TaskId("T-2"), OTHER_SESSION) == "agent/T-2"
    await workspace.release(keep=False)
    assert await repository.free_branch(TASK, OTHER_SESSION) == "agent/T-1"
    user.git("branch", "agent/T-1/fork")
    assert await repository.free_branch(TASK, OTHER_SESSION) == "agent/T-1-xy3zab"


async def test_somebody_elses_branch_is_not_taken(user: User, repository: Repository) -> None:
    base = user.head()
    user.write("theirs", "x")
    user.git("branch", "agent/T-1", user.commit("Theirs"))
    with pytest.raises(WorkspaceError, match="already exists with other work"):
        await repository.open(user.request(base=base))


async def test_another_sessions_folder_is_not_taken(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    await workspace.release(keep=True)
    assert await repository.free_branch(TASK, OTHER_SESSION) == "agent/T-1-xy3zab"
    with pytest.raises(WorkspaceError, match=f"contains the work of session {SESSION}"):
        await repository.open(user.request(session=OTHER_SESSION))


async def test_a_commit_does_not_replace_one_of_somebody_else(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    tree = await workspace.write([NEW], workspace.facts.tree)
    theirs = User(Path(workspace.facts.path))
    theirs.git("commit", "--quiet", "--allow-empty", "--message", "By hand")
    by_hand = theirs.head()
    with pytest.raises(WorkspaceError, match="was moved by another process"):
        await workspace.commit(tree, "Add new")
    assert user.git("rev-parse", "agent/T-1") == by_hand


async def test_a_commit_made_again_replaces_ours(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    tree = await workspace.write([NEW], workspace.facts.tree)
    await workspace.commit(tree, "Add new")
    second = await workspace.commit(tree, "Add new, said better")
    assert user.git("rev-parse", "agent/T-1", f"{second}^") == f"{second}\n{workspace.facts.base}"


async def test_without_an_author_nothing_is_committed(user: User, repository: Repository, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    with pytest.raises(RepoError) as refused:
        await commit_task(repository, user.request(), {"new": "x"})
    assert "git config --global user.email" in refused.value.advice
    assert user.git("rev-parse", "agent/T-1") == user.head()


async def test_the_newest_unmerged_commit_of_a_task(user: User, repository: Repository) -> None:
    assert await repository.task_commit(TASK) is None
    idle = await repository.open(user.request(task=TaskId("T-2")))
    await idle.release(keep=True)
    assert await repository.task_commit(TaskId("T-2")) is None
    first = await commit_task(repository, user.request(), {"new": "1"})
    assert await repository.task_commit(TASK) == first
    later = user.request(session=OTHER_SESSION, branch="agent/T-1-xy3zab", base=first)
    dependent = await repository.open(later)
    assert await repository.task_commit(TASK) == first
    await dependent.release(keep=False)
    user.git("branch", "agent/T-1-other", first)
    user.git("branch", "agent/T-11", first)
    assert await repository.task_commit(TaskId("T-11")) == first
    await merge_as_shown(repository, first, "Merge")
    assert await repository.task_commit(TASK) is None


async def test_a_task_on_another_tasks_commit_has_none_of_its_own(user: User, repository: Repository) -> None:
    first = await commit_task(repository, user.request(), {"new": "1"})
    workspace = await repository.open(user.request(task=TaskId("T-2"), base=first))
    assert await repository.task_commit(TaskId("T-2")) is None
    assert await workspace.read("new") == FileContent(b"1")


async def test_what_is_linked_is_never_taken_for_content(user: User, repository: Repository) -> None:
    user.write(".gitignore", ".venv/\nnode_modules/\n")
    user.commit("Ignore")
    user.write(".venv/bin/python", "x")
    user.write("web/node_modules/x/index.js", "x")
    workspace = await repository.open(
        user.request(links=(".venv", "web/node_modules", "web/node_modules/x", "missing"))
    )
    assert workspace.facts.linked == (".venv", "web/node_modules")
    assert (Path(workspace.facts.path) / ".venv/bin/python").read_text() == "x"
    assert await workspace.list_files() == (".gitignore", "README.md", "src/app.py")
    assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    point = await workspace.checkpoint(SESSION, 1, "x")
    assert point.tree == workspace.facts.tree
    await workspace.restore(workspace.facts.base)
    assert (Path(workspace.facts.path) / ".venv").is_symlink()
    for path in (".venv", ".venv/bin/python"):
        with pytest.raises(WorkspaceError):
            await workspace.read(path)
        with pytest.raises(WorkspaceError):
            await workspace.put_back(workspace.facts.tree, [path])
        with pytest.raises(WorkspaceError):
            await workspace.write([FileChange(path, None, FileContent(b"y"))], workspace.facts.tree)
    await workspace.release(keep=False)
    assert (user.root / ".venv/bin/python").read_text() == "x"


@pytest.fixture
def module(user: User, tmp_path: Path) -> User:
    """Return the user of a submodule `sub`, which is not initialised."""
    inner = make_repo(tmp_path / "inner", {"lib.py": "x"})
    user.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "vendor/sub")
    user.commit("Add sub")
    user.git("submodule", "--quiet", "deinit", "vendor/sub")
    return user


async def test_an_initialised_submodule_is_linked_and_stays_a_submodule(module: User, repository: Repository) -> None:
    module.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    assert await (await repository.checkout_files()).absent_sources() == ("vendor/sub",)
    workspace = await repository.open(module.request(links=("vendor/sub/",)))
    assert workspace.facts.linked == ("vendor/sub",)
    tree = Path(workspace.facts.path)
    assert (tree / "vendor/sub/lib.py").read_text() == "x"
    assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    assert (await workspace.checkpoint(SESSION, 1, "x")).tree == workspace.facts.tree
    (tree / "vendor/sub").unlink()
    assert await workspace.reset(workspace.facts.tree) == Reset()
    await workspace.restore(workspace.facts.base)
    assert (tree / "vendor/sub/lib.py").read_text() == "x"
    with pytest.raises(WorkspaceError, match="submodule"):
        await workspace.write([FileChange("vendor/sub/y", None, FileContent(b"y"))], workspace.facts.tree)
    await workspace.release(keep=True)
    again = await repository.open(module.request(links=("vendor/sub",)))
    assert again.facts.linked == ("vendor/sub",)
    await again.release(keep=False)
    assert (module.root / "vendor/sub/lib.py").read_text() == "x"


async def test_a_link_is_nobodys_work(module: User, repository: Repository) -> None:
    module.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    module.write(".gitignore", "node_modules/\n")
    module.commit("Ignore")
    module.write("web/node_modules/x.js", "x")
    links = ("vendor/sub/", "web/node_modules/")
    workspace = await repository.open(module.request(links=links))
    found = await asyncio.to_thread(linked_names, workspace.facts.path, str(module.root))
    assert set(found) == {"vendor/sub", "web/node_modules"}
    await workspace.release(keep=True)
    (orphan,) = await repository.with_journals(lambda _session, _branch: False).orphans()
    assert orphan.holds == ""
    facts = SessionFacts({}, lambda _: "", "2030")
    assert [each.kept for each in await repository.leftovers(facts, links) if "worktree" in each.kept] == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *(("src", "git tracks src/app.py in it"), ("README.md", "git tracks it"), ("vendor", "vendor/sub in it")),
        ("vendor/sub", "no files"),
    ],
)
async def test_what_cannot_be_linked_is_refused(name: str, why: str, module: User, repository: Repository) -> None:
    for attempt in (
        repository.open(module.request(links=(name,))),
        (await repository.checkout_files()).linkable([name]),
    ):
        with pytest.raises(WorkspaceError, match=why) as caught:
            await attempt
        assert caught.value.advice
    assert await (await repository.checkout_files()).absent_sources() == ()
    await (await repository.open(module.request())).release(keep=False)


@pytest.mark.parametrize("name", ["../other", "/etc", ".git/hooks", "a/../../b"])
async def test_a_link_out_of_the_repository_is_refused(name: str, user: User, repository: Repository) -> None:
    with pytest.raises(WorkspaceError):
        await repository.open(user.request(links=(name,)))


async def test_a_snapshot_holds_what_the_user_did_not_commit(user: User, repository: Repository) -> None:
    assert await repository.snapshot_checkout(SESSION, {}) == user.head()
    user.git("config", "core.autocrlf", "input")
    user.write("src/app.py", "changed\r\n")
    user.write("new folder/ünïcode\n", "x", executable=True)
    user.write("staged", "1")
    user.git("add", "staged")
    user.write("staged", "2")
    (user.root / "link").symlink_to("//odd/../target")
    (user.root / "README.md").unlink()
    commit = await repository.snapshot_checkout(SESSION, {})
    assert user.git("rev-parse", f"{commit}^", f"refs/agent/{SESSION}/base") == f"{user.head()}\n{commit}"
    listed = [line.partition("\t") for line in user.git("ls-tree", "-r", "-z", commit).split("\0") if line]
    assert [(head.split()[0], path) for head, _, path in listed] == [
        ("120000", "link"),
        ("100755", "new folder/ünïcode\n"),
        ("100644", "src/app.py"),
        ("100644", "staged"),
    ]
    assert user.git("cat-file", "blob", f"{commit}:staged") == "2"
    assert user.git("cat-file", "blob", f"{commit}:src/app.py") == "changed"
    assert user.git("cat-file", "blob", f"{commit}:link") == "//odd/../target"
    workspace = await repository.open(user.request(base=commit))
    assert await workspace.read("staged") == FileContent(b"2")


async def test_a_task_on_a_snapshot_is_merged_once_the_user_has_committed_it(
    user: User, repository: Repository
) -> None:
    user.write("README.md", "mine\n")
    user.write("new.txt", "new\n")
    base = await repository.snapshot_checkout(SESSION, {})
    done = await commit_task(repository, user.request(base=base), {"src/app.py": "task\n"})
    obstacles = ("README.md has uncommitted changes of yours.", "new.txt is untracked and would be overwritten.")
    assert (await repository.merge_preview(done)).obstacles == obstacles
    user.commit("mine")
    preview = await repository.merge_preview(done)
    assert (preview.obstacles, [each.path for each in preview.changes]) == ((), ["src/app.py"])
    await merge_as_shown(repository, done)
    assert (user.root / "src/app.py").read_text() == "task\n"


async def test_a_snapshot_holds_what_an_editor_did_not_save(user: User, repository: Repository) -> None:
    user.git("config", "core.autocrlf", "input")
    user.write("src/app.py", "on the disk")
    user.write("memory/plans/plan.yaml", "the workbench's own")
    before = fingerprint(user.root)
    unsaved = {"src/app.py": b"in the editor\r\n", "README.md": b"new"}
    commit = await repository.snapshot_checkout(SESSION, unsaved, ("memory/",))
    assert user.git("cat-file", "blob", f"{commit}:src/app.py") == "in the editor"
    assert user.git("diff", "--name-only", "HEAD", commit).split() == ["README.md", "src/app.py"]
    assert (user.root / "src/app.py").read_text() == "on the disk"
    assert fingerprint(user.root) == before
    for path in ("new.py", "../outside", ".git/config"):
        with pytest.raises(RepoError, match="is no file of the repository"):
            await repository.snapshot_checkout(SESSION, {path: b""})


async def test_tasks_of_one_session_do_not_mix(user: User, repository: Repository) -> None:
    first = await repository.open(user.request())
    await first.write([NEW], first.facts.tree)
    await first.checkpoint(SESSION, 1, "x")
    second = await repository.open(user.request(task=TaskId("T-2")))
    assert not second.facts.rebuilt
    assert await second.read("new") is None
    point = await second.checkpoint(SESSION, 2, "x")
    assert user.git("rev-parse", f"{point.commit}^") == second.facts.base


async def test_a_second_run_of_a_task_in_a_session_begins_afresh(user: User, repository: Repository) -> None:
    first = await repository.open(user.request())
    await first.commit(await first.write([NEW], first.facts.tree), "Add new")
    await first.checkpoint(SESSION, 1, "x")
    await first.release(keep=True)
    second = await repository.open(user.request(branch=await repository.free_branch(TASK, SESSION)))
    assert second.facts.branch == "agent/T-1-ab2cde"
    assert not second.facts.rebuilt
    assert await second.read("new") is None


async def test_worktrees_are_nobody_elses_to_read(user: User, repository: Repository, worktrees: Path) -> None:
    await repository.open(user.request())
    assert [path.stat().st_mode & 0o777 for path in worktrees.iterdir()] == [0o700]


async def test_a_task_let_go_begins_afresh(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    await workspace.write([NEW], workspace.facts.tree)
    point = await workspace.checkpoint(SESSION, 1, "x")
    await workspace.release(keep=False)
    again = await repository.open(user.request())
    assert not again.facts.rebuilt
    assert await again.read("new") is None
    await again.restore(point.commit)
    assert await again.read("new") == NEW.after


async def test_a_restored_state_is_what_is_rebuilt(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    await workspace.write([NEW], workspace.facts.tree)
    await workspace.checkpoint(SESSION, 1, "x")
    await workspace.restore(workspace.facts.base)
    await workspace.release(keep=True)
    shutil.rmtree(workspace.facts.path)
    assert await (await repository.open(user.request())).read("new") is None


async def test_work_goes_on_though_git_forgot_the_worktree(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    Path(workspace.facts.path, "unsaved").write_text("x")
    await workspace.release(keep=True)
    shutil.rmtree(user.root / ".git/worktrees")
    user.git("branch", "-D", "agent/T-1")
    again = await repository.open(user.request())
    assert await again.read("unsaved") == FileContent(b"x")
    assert User(Path(again.facts.path)).git("status", "--porcelain", "--branch") == "## agent/T-1\n?? unsaved"
    await again.release(keep=False)
    assert len(user.git("worktree", "list").splitlines()) == 1


async def test_a_folder_in_the_way_is_left_alone(user: User, repository: Repository, worktrees: Path) -> None:
    workspace = await repository.open(user.request())
    await workspace.release(keep=False)
    path = Path(workspace.facts.path)
    path.mkdir()
    (path / "mine").write_text("x")
    with pytest.raises(WorkspaceError, match="already exists"):
        await repository.open(user.request())
    assert (path / "mine").exists()


async def test_work_on_another_base_is_not_lost(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    Path(workspace.facts.path, "unsaved").write_text("x")
    await workspace.release(keep=True)
    user.write("more", "x")
    user.commit("More")
    with pytest.raises(WorkspaceError, match="is based on"):
        await repository.open(user.request())
    assert Path(workspace.facts.path, "unsaved").exists()


async def test_a_worktree_the_user_locked_is_kept(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    user.git("worktree", "lock", workspace.facts.path)
    with pytest.raises(WorkspaceError, match="is locked"):
        await workspace.release(keep=False)
    assert Path(workspace.facts.path).exists()
    await repository.open(user.request())
