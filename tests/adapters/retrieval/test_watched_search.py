"""Searches while a watch tells what changed: as current as if every file were looked at, which none is."""

import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.retrieval import change_finder
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import CodeQuery, PastCommit
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from tests.adapters.git.user import User, make_home, make_repo

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
BEFORE = "def needle_old():\n    return 1\n"
AFTER = "def needle_new():\n    return 2\n"


class CountedSources:
    """Counts how often the files were listed."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.lists = 0

    @property
    def root(self) -> str:
        return self._sources.root

    async def list_files(self) -> tuple[str, ...]:
        self.lists += 1
        return await self._sources.list_files()

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return await self._sources.read_files(paths)

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return await self._sources.past_commits(limit, until)


class Searched:
    """A repository, and the search in it."""

    def __init__(self, user: User, sources: CountedSources, retriever: CodeRetriever) -> None:
        self.user, self.sources, self.retriever = user, sources, retriever
        self.root = user.root

    async def found(self) -> set[str]:
        chunks = await self.retriever.search(self.sources, CodeQuery("needle_old needle_new"), 9)
        return {chunk.path for chunk in chunks if "needle" in chunk.text}

    async def new(self) -> set[str]:
        """Return the files in which the new needle is."""
        chunks = await self.retriever.search(self.sources, CodeQuery("needle_new"), 9)
        return {chunk.path for chunk in chunks if "needle_new" in chunk.text}


@pytest.fixture
async def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Searched]:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(make_home(tmp_path / "home")))
    monkeypatch.setattr(change_finder, "_TRUSTED_SECONDS", 1e9)
    user = make_repo(tmp_path / "repo")
    user.write("src/deep/old.py", BEFORE)
    user.write(".gitignore", "build/\n*.log\n")
    user.commit("Add a needle")
    (user.root / "build").mkdir()
    (user.root / "empty" / "inner").mkdir(parents=True)
    sources = CountedSources(await Repository(user.root, tmp_path / "worktrees").checkout_files())
    settings = RetrievalSettings(embeddings=EmbeddingSettings(EmbeddingProvider.NONE))
    retriever = CodeRetriever(settings, tmp_path / "cache")
    try:
        # The first search lists the files, the second one watches them, and reads again what was just written.
        for _ in range(3):
            assert (await retriever.search(sources, CodeQuery("needle_old"), 1))[0].path == "src/deep/old.py"
        yield Searched(user, sources, retriever)
    finally:
        await retriever.close()


async def test_an_unchanged_folder_is_not_listed_again(searched: Searched) -> None:
    before = searched.sources.lists
    for _ in range(3):
        assert await searched.found() == {"src/deep/old.py"}
    assert searched.sources.lists == before


async def test_a_changed_file_is_read_again_without_a_list(searched: Searched) -> None:
    before = searched.sources.lists
    searched.user.write("src/deep/old.py", AFTER)
    assert await searched.new() == {"src/deep/old.py"}
    # The same size, within the same tick of the clock, and with the clock set back.
    searched.user.write("src/deep/old.py", BEFORE)
    os.utime(searched.root / "src/deep/old.py", (1, 1))
    assert await searched.new() == set()
    searched.user.write("src/deep/old.py", AFTER)
    os.utime(searched.root / "src/deep/old.py", (1, 1))
    assert await searched.new() == {"src/deep/old.py"}
    assert searched.sources.lists == before


async def test_a_file_that_is_only_touched_is_not_parsed_again(searched: Searched) -> None:
    before = searched.retriever.parsed_files
    os.utime(searched.root / "src/deep/old.py", (5, 5))
    assert await searched.found() == {"src/deep/old.py"}
    assert searched.retriever.parsed_files == before


def _write(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(AFTER)


def _stop_ignoring(user: User) -> None:
    _write(user.root, "build/new.py")
    user.write(".gitignore", "*.log\n")


def _begin_ignoring(user: User) -> None:
    user.git("rm", "--cached", "-q", "-r", "src")
    user.write(".gitignore", "src\n")


def _force(user: User) -> None:
    _write(user.root, "build/new.py")
    user.git("add", "-f", "build/new.py")


def _check_out(user: User) -> None:
    user.write(OLD, "x = 1\n")
    user.git("checkout", "src")


def _link(user: User) -> None:
    (user.root / OLD).unlink()
    (user.root / OLD).symlink_to("/etc/passwd")


OLD = "src/deep/old.py"
CHANGES: dict[str, tuple[Callable[[User], object], set[str]]] = {
    "new": (lambda user: user.write("src/new.py", AFTER), {OLD, "src/new.py"}),
    "new folders": (lambda user: user.write("a/b/c/new.py", AFTER), {OLD, "a/b/c/new.py"}),
    "in an empty folder": (lambda user: user.write("empty/inner/new.py", AFTER), {OLD, "empty/inner/new.py"}),
    "ignored": (lambda user: user.write("build/new.py", AFTER), {OLD}),
    "renamed": (lambda user: (user.root / OLD).rename(user.root / "src/moved.py"), {"src/moved.py"}),
    "renamed folder": (lambda user: (user.root / "src").rename(user.root / "lib"), {"lib/deep/old.py"}),
    "deleted": (lambda user: os.unlink(user.root / OLD), set()),  # noqa: PTH108  a Path's returns nothing
    "deleted folder": (lambda user: shutil.rmtree(user.root / "src"), set()),
    "no longer ignored": (_stop_ignoring, {OLD, "build/new.py"}),
    "ignored from now on": (_begin_ignoring, set()),
    "forced into git's index": (_force, {OLD, "build/new.py"}),
    "checked out": (_check_out, {OLD}),
    "a link in its place": (_link, set()),
}


@pytest.mark.slow(quick=4)
@pytest.mark.parametrize("change", CHANGES)
async def test_what_comes_and_goes_is_found_or_not(searched: Searched, change: str) -> None:
    act, wanted = CHANGES[change]
    act(searched.user)
    assert await searched.found() == wanted
    before = searched.sources.lists
    # And from then on there is a watch again.
    for _ in range(2):
        assert await searched.found() == wanted
    searched.user.write(".gitattributes", "* text\n")
    assert await searched.found() == wanted
    assert searched.sources.lists <= before + 4


async def test_a_locked_index_hides_nothing_and_a_corrupt_one_is_an_error_that_passes(searched: Searched) -> None:
    (searched.root / ".git" / "index.lock").write_bytes(b"")
    searched.user.write("src/deep/old.py", AFTER)
    assert await searched.new() == {"src/deep/old.py"}
    (searched.root / ".git" / "index.lock").unlink()
    index = searched.root / ".git" / "index"
    kept = index.read_bytes()
    index.write_bytes(b"nonsense")
    with pytest.raises(WorkbenchError):
        await searched.found()
    index.write_bytes(kept)
    assert await searched.found() == {"src/deep/old.py"}


async def test_a_log_that_is_ignored_costs_one_list_however_often_it_is_written(searched: Searched) -> None:
    (searched.root / "run.log").write_text("1\n")
    assert await searched.found() == {"src/deep/old.py"}
    before = searched.sources.lists
    for number in range(3):
        (searched.root / "run.log").write_text(f"{number}\n")
        assert await searched.found() == {"src/deep/old.py"}
    assert searched.sources.lists == before


async def test_a_sparse_checkout_and_a_submodule_are_searched_as_far_as_they_are_there(
    searched: Searched, tmp_path: Path
) -> None:
    user = searched.user
    other = make_repo(tmp_path / "other")
    other.write("inner.py", AFTER)
    other.commit("Inner")
    user.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.root), "module")
    user.write("lib/kept.py", AFTER)
    user.commit("Add a module and a library")
    assert await searched.found() == {"src/deep/old.py", "lib/kept.py"}
    assert searched.retriever.status(searched.sources).submodules == 1
    user.git("sparse-checkout", "set", "lib")
    assert await searched.found() == {"lib/kept.py"}
    user.git("sparse-checkout", "disable")
    assert await searched.found() == {"src/deep/old.py", "lib/kept.py"}


async def test_a_cancelled_search_leaves_no_change_unread(searched: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(paths: Sequence[str]) -> Mapping[str, bytes]:
        raise WorkbenchError("the disk is gone")

    searched.user.write("src/deep/old.py", AFTER)
    with monkeypatch.context() as patched:
        patched.setattr(searched.sources, "read_files", broken)
        with pytest.raises(WorkbenchError):
            await searched.found()
    assert await searched.new() == {"src/deep/old.py"}


async def test_without_a_watch_every_file_is_looked_at_as_before(
    searched: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.system.folder_watch._LOCAL", frozenset())
    settings = RetrievalSettings(embeddings=EmbeddingSettings(EmbeddingProvider.NONE))
    other = Searched(searched.user, searched.sources, CodeRetriever(settings, tmp_path / "cache"))
    try:
        for _ in range(3):
            assert await other.found() == {"src/deep/old.py"}
        before = searched.sources.lists
        searched.user.write("src/deep/old.py", AFTER)
        assert await other.new() == {"src/deep/old.py"}
        assert searched.sources.lists == before + 1
    finally:
        await other.retriever.close()
