"""Nothing that a repository configures runs, whatever is done in it."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_workbench.adapters.git.discovery import discover
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.hostile import make_hostile
from tests.adapters.git.user import SESSION, TASK, User, commit_task, merge_as_shown


@pytest.fixture
def canaries(user: User, tmp_path: Path) -> Path:
    """The folder in which whatever the repository gets to run leaves a trace; the user's work in it goes on."""
    user.write("data.long", "long\n")
    user.write("data.odd", "odd\n")
    user.write("data.crlf", "one\r\ntwo\r\n")
    user.write("data.ident", "$Id$\n")
    user.write("lines.txt", "".join(f"line {number}\n" for number in range(1, 31)))
    inner = User(user.root / "vendor/inner")
    inner.git("init", "--quiet")
    inner.write("x.py", "x\n")
    inner.commit("Inner")
    user.git("-c", "advice.addEmbeddedRepo=false", "add", "--all")
    user.git("commit", "--quiet", "--message", "More")
    make_hostile(inner, tmp_path / "inner-canaries")
    # Of a name that only the inner repository knows.
    inner.write(".gitattributes", "*.py filter=deep\n")
    inner.git("config", "filter.deep.clean", str(inner.root / ".lair/clean"))
    inner.git("config", "--unset", "core.worktree")
    make_hostile(user, tmp_path / "canaries")
    # Times that do not fit the index, so that git has to look into the files.
    for path in ("src/app.py", "data.long", "data.odd", "vendor/inner/x.py"):
        os.utime(user.root / path, (1, 1))
    user.write("README.md", "# Changed by the user\n")
    user.write("data.ident", "$Id$ changed\n")
    return tmp_path / "canaries"


def traces(canaries: Path) -> set[str]:
    return {path.name for path in canaries.parent.glob("*canaries/*")}


def test_the_traps_work(user: User, canaries: Path) -> None:
    # Without this the tests below could not fail.
    for command in ("status", "diff -- data.ident", "branch x", "add -A", "merge x", "stash"):
        subprocess.run(
            ["git", f"--work-tree={user.root}", *command.split()], cwd=user.root, capture_output=True, check=False
        )
    assert {"clean", "process", "diff", "fsmonitor", "hooks-reference-transaction"} <= traces(canaries)


def test_a_filter_counts_as_it_is_configured_when_a_file_is_looked_at(user: User, tmp_path: Path) -> None:
    program, paths = discover(str(user.root))
    plumbing = Plumbing(program, paths.git_dir)
    assert plumbing.run("for-each-ref")
    assert "filters" not in vars(plumbing), "asked of git although no command looked at a file"
    user.write(".gitattributes", "* filter=late\n")
    user.git("config", "filter.late.clean", f"touch {tmp_path / 'late'}; cat")
    user.write("README.md", "# Of another length\n")
    assert b"README.md" in plumbing.run("diff-files", "--name-only", work_tree=str(user.root))
    plumbing.run("hash-object", "--stdin-paths", stdin=b"README.md\n", work_tree=str(user.root))
    assert not (tmp_path / "late").exists()
    user.git("hash-object", "README.md")
    assert (tmp_path / "late").exists()


async def test_inspecting_runs_nothing(user: User, canaries: Path, repository: Repository) -> None:
    before = fingerprint(user.root)
    facts = await repository.inspect()
    assert facts.root == str(user.root)
    assert "README.md" in facts.dirty_paths
    assert "src/app.py" not in facts.dirty_paths
    assert facts.submodules == ("vendor/inner",)
    assert fingerprint(user.root) == before
    assert traces(canaries) == set()


async def test_a_whole_task_runs_nothing(
    user: User, canaries: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f".lair:{user.root / '.lair'}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_DIR", str(user.root / "nowhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(user.root / ".lair/external"))
    monkeypatch.setenv("GIT_SSH_COMMAND", str(user.root / ".lair/ssh"))
    monkeypatch.chdir(user.root / "src")
    before = fingerprint(user.root)
    base = await repository.snapshot_checkout(SESSION, {})
    branch = await repository.free_branch(TASK, SESSION)
    monkeypatch.delenv("GIT_DIR")
    workspace = await repository.open(user.request(branch=branch, base=base))
    monkeypatch.setenv("GIT_DIR", str(user.root / "nowhere"))
    assert await workspace.read("README.md") == FileContent(b"# Changed by the user\n")
    await workspace.checkpoint(SESSION, 1, "start")
    old = await workspace.read("src/app.py")
    assert old is not None
    tree = await workspace.write(
        [
            FileChange("src/app.py", old, FileContent(b"new\n")),
            FileChange("new.long", None, FileContent(b"x\n")),
            FileChange("run.sh", None, FileContent(b"y\n", executable=True)),
        ],
        workspace.facts.tree,
    )
    await workspace.changes(tree)
    assert await workspace.unapproved_changes(tree) == ()
    point = await workspace.checkpoint(SESSION, 2, "step 1")
    (Path(workspace.facts.path) / "data.odd").write_text("stray\n")
    await workspace.put_back(tree, ["data.odd"])
    await workspace.restore(base)
    await workspace.restore(point.commit)
    await workspace.commit(tree, "Done")
    await workspace.release(keep=False)
    assert await repository.task_commit(TASK) is not None
    assert fingerprint(user.root) == before
    assert traces(canaries) == set()


async def test_merging_runs_nothing(user: User, canaries: Path, repository: Repository) -> None:
    lines = (user.root / "lines.txt").read_text()
    base = user.head()
    theirs = {"lines.txt": lines.replace("line 1\n", "line one\n"), "new.txt": "new\n"}
    commit = await commit_task(repository, user.request(), theirs)
    ours = {"lines.txt": lines.replace("line 30\n", "line thirty\n")}
    other = await commit_task(repository, user.request(task=TaskId("T-2"), base=base), ours)
    assert (await merge_as_shown(repository, other, "Merge T-2")).how == "fast-forward"
    assert (await repository.merge_preview(commit)).obstacles == ()
    assert (await merge_as_shown(repository, commit, "Merge T-1")).how == "merge"
    # Line endings are the user's to choose: git turns them by itself, without a program.
    assert (user.root / "new.txt").read_bytes() == b"new\r\n"
    merged = lines.replace("line 1\n", "line one\n").replace("line 30\n", "line thirty\n")
    assert (user.root / "lines.txt").read_text() == merged
    assert (user.root / "README.md").read_bytes() == b"# Changed by the user\n"
    assert traces(canaries) == set()


async def test_a_file_that_needs_a_filter_is_not_merged_without_it(
    user: User, canaries: Path, repository: Repository
) -> None:
    workspace = await repository.open(user.request())
    tree = await workspace.write([FileChange("new.py", None, FileContent(b"new\n"))], workspace.facts.tree)
    commit = await workspace.commit(tree, "Add new")
    assert (await repository.merge_preview(commit)).obstacles == (
        "new.py needs the filter evil, which the workbench does not run.",
    )
    assert traces(canaries) == set()


async def test_a_missing_object_is_not_fetched(user: User, canaries: Path, repository: Repository) -> None:
    blob = user.git("ls-tree", "--format=%(objectname)", "HEAD", "lines.txt")
    (user.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(WorkspaceError):
        await repository.open(user.request())
    assert traces(canaries) == set()
    subprocess.run(["git", "cat-file", "blob", blob], cwd=user.root, capture_output=True, check=False)
    assert "ssh" in traces(canaries)


async def test_what_is_checked_out_is_what_git_stores(user: User, canaries: Path, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    for path in ("data.crlf", "data.ident", "src/app.py"):
        content = await workspace.read(path)
        assert content is not None
        blob = subprocess.run(
            ["git", "cat-file", "blob", f"HEAD:{path}"], cwd=user.root, capture_output=True, check=True
        )
        assert content.data == blob.stdout
    assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    assert traces(canaries) == set()
