"""Bytes, names, modes and links: content is exactly what it is, and nothing is reached through a link."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.user import SESSION, User

NAMES = (
    *(" leading", "with space", "new\nline", "tab\t", 'quo"te', "back\\slash", "ünïcödé", "日本/語", "-dash"),
    *(":(glob)*", "#x"),
)
BYTES = bytes(range(256)) + b"\r\n\n\r"

pytestmark = pytest.mark.usefixtures("untouched")


@pytest.fixture
async def workspace(user: User, repository: Repository) -> GitWorkspace:
    return await repository.open(user.request())


async def test_any_name_and_any_byte_survive(workspace: GitWorkspace) -> None:
    # macOS refuses names that are not UTF-8.
    names = (*NAMES, *([os.fsdecode(b"not-utf8-\xff")] if sys.platform == "linux" else []))
    changes = [FileChange(name, None, FileContent(BYTES, executable=name.startswith("q"))) for name in names]
    tree = await workspace.write(changes, workspace.facts.tree)
    assert await workspace.unapproved_changes(tree) == ()
    assert set(names) < set(await workspace.list_files())
    assert sorted(await workspace.changes(tree), key=lambda change: change.path) == sorted(
        changes, key=lambda change: change.path
    )
    point = await workspace.checkpoint(SESSION, 1, "x")
    assert point.tree == tree
    await workspace.restore(workspace.facts.base)
    await workspace.restore(point.commit)
    for change in changes:
        assert await workspace.read(change.path) == change.after


@pytest.mark.parametrize("setting", ["true", "input"])
async def test_line_endings_are_never_turned(setting: str, tmp_path: Path, repository: Repository, user: User) -> None:
    other = User(tmp_path / "other")
    other.git("init", "--quiet")
    other.git("config", "core.autocrlf", setting)
    other.write(".gitattributes", "*.bat text eol=crlf\n*.id ident\n")
    other.write("unix", "a\nb\n")
    other.write("x.bat", "a\r\nb\r\n")
    other.write("y.id", "$Id$\n")
    other.commit("Start")
    workspace = await Repository(other.root, tmp_path / "other-state").open(other.request())
    assert await workspace.read("unix") == FileContent(b"a\nb\n")
    assert await workspace.read("x.bat") == FileContent(b"a\nb\n")
    assert await workspace.read("y.id") == FileContent(b"$Id$\n")
    crlf = FileContent(b"a\r\nc\r\n")
    tree = await workspace.write([FileChange("unix", FileContent(b"a\nb\n"), crlf)], workspace.facts.tree)
    assert other.git("cat-file", "-s", f"{tree}:unix") == "6"
    assert (await workspace.checkpoint(SESSION, 1, "x")).tree == tree
    assert await workspace.unapproved_changes(tree) == ()


async def test_executable_bits(workspace: GitWorkspace) -> None:
    before = await workspace.read("README.md")
    assert before is not None
    path = Path(workspace.facts.path) / "README.md"
    tree = await workspace.write(
        [FileChange("README.md", before, FileContent(before.data, executable=True))], workspace.facts.tree
    )
    assert path.stat().st_mode & stat.S_IXUSR
    path.chmod(0o644)
    assert [change.path for change in await workspace.unapproved_changes(tree)] == ["README.md"]
    with pytest.raises(WorkspaceError, match="changed since the diff was made"):
        await workspace.write([FileChange("README.md", FileContent(before.data, executable=True), None)], tree)
    await workspace.put_back(tree, ["README.md"])
    assert path.stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize(
    "path",
    [
        "../out",
        "/etc/passwd",
        "a/../../out",
        ".git/config",
        ".GIT/config",
        "src/.git/x",
        "git~1/x",
        "",
        "a//b",
        "./a",
        "a\0b",
    ],
)
async def test_paths_that_leave_are_refused(path: str, workspace: GitWorkspace) -> None:
    for act in (
        workspace.read(path),
        workspace.write([FileChange(path, None, FileContent(b"x"))], workspace.facts.tree),
        workspace.put_back(workspace.facts.tree, [path]),
    ):
        with pytest.raises(WorkspaceError):
            await act


async def test_nothing_is_reached_through_a_link(workspace: GitWorkspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("precious")
    root = Path(workspace.facts.path)
    (root / "way").symlink_to(outside)
    (root / "leaf").symlink_to(outside / "app.py")
    (root / "src/app.py").unlink()
    (root / "src").rmdir()
    (root / "src").symlink_to(outside)
    os.mkfifo(root / "pipe")
    tree = workspace.facts.tree
    for path in ("way/app.py", "leaf", "src/app.py", "pipe"):
        with pytest.raises(WorkspaceError):
            await workspace.read(path)
        with pytest.raises(WorkspaceError):
            await workspace.write([FileChange(path, FileContent(b"precious"), FileContent(b"x"))], tree)
        with pytest.raises(WorkspaceError):
            await workspace.write([FileChange(path, FileContent(b"precious"), None)], tree)
    assert await workspace.list_files() == ("README.md", "leaf", "src", "way")
    shown = {change.path: change for change in await workspace.unapproved_changes(tree)}
    assert shown.keys() == {"leaf", "src", "src/app.py", "way"}
    assert shown["way"] == FileChange("way", None, None)
    assert shown["src/app.py"].after is None
    point = await workspace.checkpoint(SESSION, 1, "x")
    await workspace.put_back(tree, list(shown))
    assert await workspace.unapproved_changes(tree) == ()
    await workspace.restore(point.commit)
    await workspace.restore(workspace.facts.base)
    assert await workspace.unapproved_changes(tree) == ()
    assert (outside / "app.py").read_text() == "precious"
    assert sorted(path.name for path in outside.iterdir()) == ["app.py"]


async def test_a_repository_inside_hides_nothing(workspace: GitWorkspace) -> None:
    inner = User(Path(workspace.facts.path) / "inner")
    inner.git("init", "--quiet")
    inner.write("a", "1")
    inner.write("deep/b", "2")
    inner.commit("x")
    assert [change.path for change in await workspace.unapproved_changes(workspace.facts.tree)] == [
        "inner/a",
        "inner/deep/b",
    ]
    point = await workspace.checkpoint(SESSION, 1, "x")
    await workspace.restore(workspace.facts.base)
    assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    await workspace.restore(point.commit)
    assert await workspace.read("inner/deep/b") == FileContent(b"2")


async def test_ignored_files_stay_and_are_not_content(workspace: GitWorkspace) -> None:
    root = Path(workspace.facts.path)
    await workspace.write(
        [FileChange(".gitignore", None, FileContent(b"*.log\nbuild/\n"))],
        workspace.facts.tree,
    )
    (root / "noise.log").write_text("x")
    (root / "build").mkdir()
    (root / "build/out").write_text("x")
    (root / "empty/folder").mkdir(parents=True)
    first = await workspace.checkpoint(SESSION, 1, "x")
    assert await workspace.list_files() == (".gitignore", "README.md", "src/app.py")
    # What was approved counts, whatever git would ignore.
    tree = await workspace.write([FileChange("build/kept", None, FileContent(b"1"))], first.tree)
    second = await workspace.checkpoint(SESSION, 2, "x")
    assert second.tree == tree
    await workspace.restore(first.commit)
    assert (root / "noise.log").exists()
    assert (root / "build/out").exists()
    assert not (root / "build/kept").exists()


async def test_a_deleted_file_leaves_no_empty_folder(workspace: GitWorkspace) -> None:
    content = await workspace.read("src/app.py")
    await workspace.write([FileChange("src/app.py", content, None)], workspace.facts.tree)
    assert not (Path(workspace.facts.path) / "src").exists()


async def test_a_name_no_disk_can_hold_is_refused(workspace: GitWorkspace) -> None:
    with pytest.raises(WorkspaceError, match="too long"):
        await workspace.read("x" * 300)


async def test_an_untracked_file_is_not_overwritten(workspace: GitWorkspace) -> None:
    (Path(workspace.facts.path) / "there").write_text("made by a test")
    (Path(workspace.facts.path) / "folder").mkdir()
    for path in ("there", "folder", "there/below"):
        with pytest.raises(WorkspaceError):
            await workspace.write([FileChange(path, None, FileContent(b"x"))], workspace.facts.tree)
    assert (Path(workspace.facts.path) / "there").read_text() == "made by a test"


async def test_a_hard_link_is_not_written_through(workspace: GitWorkspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    path = Path(workspace.facts.path) / "README.md"
    path.unlink()
    path.hardlink_to(outside)
    change = FileChange("README.md", FileContent(b"precious"), FileContent(b"overwritten"))
    await workspace.write([change], workspace.facts.tree)
    await workspace.restore(workspace.facts.base)
    assert outside.read_text() == "precious"


async def test_a_checkpoint_stores_only_what_changed(workspace: GitWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[int] = []
    original = Plumbing.run

    def counting(self: Plumbing, *arguments: str, **more: object) -> bytes:
        if arguments[0] == "hash-object":
            assert isinstance(more["stdin"], bytes)
            stored.append(more["stdin"].count(b"\n"))
        return original(self, *arguments, **more)  # type: ignore[arg-type] # handed on as they came

    root = Path(workspace.facts.path)
    for number in range(200):
        (root / f"file {number}").write_text(f"content {number}")
    monkeypatch.setattr(Plumbing, "run", counting)
    await workspace.checkpoint(SESSION, 1, "x")
    await workspace.checkpoint(SESSION, 2, "x")
    assert stored == [200]
    (root / "file 7").write_text("changed")
    (root / "file 8").rename(root / "file 8 moved")
    await workspace.checkpoint(SESSION, 3, "x")
    assert stored == [200, 1]


async def test_a_file_over_the_limit_is_checkpointed_but_not_read(workspace: GitWorkspace) -> None:
    path = Path(workspace.facts.path) / "core"
    with path.open("wb") as stream:
        stream.truncate(200_000_001)
    with pytest.raises(WorkspaceError, match="200000001 bytes"):
        await workspace.read("core")
    assert await workspace.unapproved_changes(workspace.facts.tree) == (FileChange("core", None, None),)
    await workspace.put_back(workspace.facts.tree, ["core"])
    assert not path.exists()


async def test_the_index_of_the_worktree_is_not_the_truth(workspace: GitWorkspace) -> None:
    # Whatever somebody does with git in the worktree, checkpoints hold what is on the disk.
    root = Path(workspace.facts.path)
    (root / "src/app.py").write_text("changed")
    for command in (["update-index", "--assume-unchanged", "src/app.py"], ["rm", "-q", "--cached", "README.md"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    assert [change.path for change in await workspace.unapproved_changes(workspace.facts.tree)] == ["src/app.py"]
