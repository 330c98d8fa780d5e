"""Whatever a check leaves behind, the next one finds the approved files and what their own rules ignore."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.core.errors import StorageError, WorkspaceError
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.user import SESSION, User

ALL_OF_IT = (".gitignore", "pkg/core.py", "pkg/data/a.txt", "run.sh", "top.py")
FILES = {"pkg/core.py": "X = 1\n", "pkg/data/a.txt": "a\n", "run.sh": "true\n", "top.py": "from pkg import core\n"}
RULES = "build/\n*.log\n__pycache__/\n*.pyc\n"

# Shell lines that a check may run, with what is reported as restored and as removed.
LEFTOVERS = {
    "a rule that hides itself": (
        "echo x > pkg/__init__.py; printf '.gitignore\\n__init__.py\\n' > pkg/.gitignore",
        (),
        ("pkg/.gitignore", "pkg/__init__.py"),
    ),
    "a cache that ignores itself": ("mkdir .cache; echo '*' > .cache/.gitignore; echo x > .cache/y", (), (".cache/",)),
    "an approved rule that was changed": ("echo '*' > .gitignore; echo x > new.py", (".gitignore",), ("new.py",)),
    "bytecode without a source": ("echo x > pkg/extra.pyc; mkdir __pycache__; echo x > __pycache__/top.pyc", (), ()),
    "an empty folder": ("mkdir -p lib/empty", (), ("lib/",)),
    "a pipe in place of a file": ("rm top.py; mkfifo top.py", ("top.py",), ()),
    "a pipe in place of rules": ("rm .gitignore; mkfifo .gitignore pkg/.gitignore pkg/.gitattributes", (".gitignore",),
        ("pkg/.gitattributes", "pkg/.gitignore")),
    "a repository inside": ("git init -q sub; rm sub/.git/HEAD; mkfifo sub/.git/HEAD sub/x", (), ("sub/",)),
    "other spellings of .git": ("mkdir -p .GIT pkg/.Git; echo x > .GIT/config; echo x > pkg/.Git/x", (),
        (".GIT", "pkg/.Git")),
    "a sparse file of two terabytes": ("truncate -s 2T huge; truncate -s 2T top.py", ("top.py",), ("huge",)),
    "a link in place of a folder": ("rm -r pkg; ln -s / pkg; ln -s loop loop", ("pkg/core.py", "pkg/data/a.txt"),
        ("loop",)),
    "a folder in place of a file": ("rm run.sh; mkdir run.sh; echo x > run.sh/x.log; echo x > run.sh/y", ("run.sh",),
        ("run.sh/y",)),
    "a file in place of a folder": ("rm -r pkg; echo x > pkg", ("pkg/core.py", "pkg/data/a.txt"), ()),
    "names that no text holds": ("touch \"$(printf 'a\\nb\\377')\"", (), (os.fsdecode(b"a\nb\xff"),)),
    "the git file": ("rm -f .git; mkfifo .git", (), ()),
    "the git file as a huge one": ("rm -f .git; truncate -s 2T .git", (), ()),
    "the git file as a link": ("rm -f .git; ln -s /etc/passwd .git", (), ()),
    "a hard link": ("ln top.py again.py; echo x >> again.py", ("top.py",), ("again.py",)),
    "the folder itself": ("rm -rf \"$PWD\"", ALL_OF_IT, ()),
    "a link in place of the folder itself": ("d=$PWD; cd /; rm -rf $d; ln -s /etc $d", ALL_OF_IT, ()),
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("untouched")


@pytest.fixture
def user(tmp_path: Path) -> User:
    user = User(tmp_path / "repo")
    user.git("init", "--quiet")
    for path, text in FILES.items():
        user.write(path, text, executable=path == "run.sh")
    user.write(".gitignore", RULES)
    user.commit("Start")
    user.git("update-index", "-q", "--refresh")
    return user


@pytest.fixture
async def workspace(user: User, repository: Repository) -> GitWorkspace:
    return await repository.open(user.request())


def leave(workspace: GitWorkspace, line: str) -> None:
    """Run a shell line in the worktree, as a check without a sandbox would."""
    subprocess.run(["/bin/sh", "-c", line], cwd=workspace.facts.path, check=True, stderr=subprocess.DEVNULL)


def standing(workspace: GitWorkspace) -> dict[str, str]:
    """Return everything that stands in the worktree: files with their text, links, folders, whatever else."""
    found = {}
    root = Path(workspace.facts.path)
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder, name)
            kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file" if path.is_file() else "?"
            text = path.read_text() if kind == "file" else ""
            found[path.relative_to(root).as_posix()] = f"{kind} {path.lstat().st_mode:o} {text}"
    return found


@pytest.mark.slow(quick=6)
@pytest.mark.parametrize("what", LEFTOVERS)
async def test_the_files_are_those_of_the_tree_again(what: str, workspace: GitWorkspace) -> None:
    line, restored, removed = LEFTOVERS[what]
    before = standing(workspace)
    leave(workspace, line)
    await workspace.checkpoint(SESSION, 1, "kept")
    reset = await workspace.reset(workspace.facts.tree)
    assert standing(workspace) == before
    assert reset.restored == tuple(sorted(restored))
    assert reset.removed == tuple(sorted(removed))
    again = await workspace.reset(workspace.facts.tree)
    assert (again.restored, again.removed) == ((), ())


async def test_what_the_approved_rules_ignore_stays_but_for_bytecode(workspace: GitWorkspace) -> None:
    leave(workspace, "mkdir -p build/lib; echo x > build/lib/a.py; echo x > pkg/x.log; mkdir -p build/__pycache__")
    leave(workspace, "mkdir -p pkg/__pycache__; touch pkg/__pycache__/core.pyc pkg/gone.pyc")
    reset = await workspace.reset(workspace.facts.tree)
    assert reset.removed == ()
    root = Path(workspace.facts.path)
    assert (root / "build/lib/a.py").exists()
    assert (root / "pkg/x.log").exists()
    assert sorted(path.name for path in (root / "pkg").iterdir()) == ["core.py", "data", "x.log"]


async def test_rules_that_no_tree_holds_count_for_nothing(user: User, home: Path, workspace: GitWorkspace) -> None:
    (home / ".gitconfig").write_text((home / ".gitconfig").read_text() + f"[core]\n\texcludesFile = {home}/ignored\n")
    (home / "ignored").write_text("hidden.py\n")
    exclude = user.root / ".git/info/exclude"
    before = exclude.read_text()
    exclude.write_text("other.py\n")
    leave(workspace, "touch hidden.py other.py")
    reset = await workspace.reset(workspace.facts.tree)
    exclude.write_text(before)
    assert reset.removed == ("hidden.py", "other.py")


async def test_rules_count_once_they_are_approved(workspace: GitWorkspace) -> None:
    leave(workspace, "mkdir out; touch out/x")
    rules = FileChange("pkg/.gitignore", None, FileContent(b"*.tmp\n"))
    more = FileChange(".gitignore", FileContent(RULES.encode()), FileContent(b"out/\n"))
    tree = await workspace.write([rules, more], workspace.facts.tree)
    leave(workspace, "touch pkg/a.tmp a.tmp")
    assert (await workspace.reset(tree)).removed == ("a.tmp",)
    assert (Path(workspace.facts.path) / "out/x").exists()
    assert (await workspace.reset(workspace.facts.tree)).removed == ("out/", "pkg/.gitignore", "pkg/a.tmp")


@pytest.mark.slow
async def test_folders_of_any_depth_are_removed(workspace: GitWorkspace) -> None:
    before = standing(workspace)
    leave(workspace, f"{sys.executable} -c \"import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\"")
    await workspace.checkpoint(SESSION, 1, "kept")
    await workspace.reset(workspace.facts.tree)
    assert standing(workspace) == before


async def test_a_link_of_the_workspace_is_what_it_was(user: User, repository: Repository) -> None:
    user.write(".venv/lib.py", "mine")
    user.write("web/node_modules/x.js", "mine")
    workspace = await repository.open(user.request(links=(".venv", "web/node_modules")))
    before = standing(workspace)
    leave(workspace, "rm .venv; mkdir .venv; echo theirs > .venv/lib.py; rm -r web; echo x > web")
    await workspace.reset(workspace.facts.tree)
    assert standing(workspace) == before
    assert (Path(workspace.facts.path) / ".venv/lib.py").read_text() == "mine"
    shutil.rmtree(user.root / ".venv")
    shutil.rmtree(user.root / "web")


async def test_a_checkpoint_keeps_what_can_be_kept(workspace: GitWorkspace) -> None:
    leave(workspace, "truncate -s 300M large; truncate -s 300M top.py; echo x > small; mkfifo pipe; echo x > a.pyc")
    point = await workspace.checkpoint(SESSION, 1, "x")
    await workspace.reset(workspace.facts.tree)
    await workspace.restore(point.commit)
    assert await workspace.read("small") == FileContent(b"x\n")
    assert await workspace.read("top.py") == FileContent(FILES["top.py"].encode())
    assert set(await workspace.list_files()) == {".gitignore", "small", *FILES}


async def test_files_that_may_not_be_read_are_refused_by_name(workspace: GitWorkspace) -> None:
    leave(workspace, "mkfifo pipe; truncate -s 2T huge")
    with pytest.raises(WorkspaceError, match="pipe is not a regular file"):
        await workspace.read("pipe")
    with pytest.raises(WorkspaceError, match="2199023255552 bytes"):
        await workspace.read("huge")
    assert await workspace.read_files(["pipe", "huge", "top.py"]) == {"top.py": FILES["top.py"].encode()}


async def test_a_lock_on_the_index_of_the_worktree_does_not_stop_a_commit(user: User, workspace: GitWorkspace) -> None:
    (user.root / ".git/worktrees/agent-T-1/index.lock").touch()
    change = FileChange("top.py", FileContent(FILES["top.py"].encode()), FileContent(b"x\n"))
    commit = await workspace.commit(await workspace.write([change], workspace.facts.tree), "Done")
    assert user.git("rev-parse", "agent/T-1") == commit
    assert (user.root / ".git/worktrees/agent-T-1/index.lock").exists()


async def test_what_cannot_be_removed_is_named(workspace: GitWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(workspace, "touch pkg/fixed")

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", path)

    monkeypatch.setattr(os, "unlink", refuse)  # an immutable file takes a capability and a disk that knows of it
    with pytest.raises(StorageError, match="pkg/fixed cannot be removed: Operation not permitted"):
        await workspace.reset(workspace.facts.tree)
