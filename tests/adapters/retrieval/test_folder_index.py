"""Building an index in the background: searched meanwhile, saved, shared, and never harmed by what it meets."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.folder_index import LikelyFiles
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from tests.adapters.retrieval.test_retriever import places, wait_until_old, write
from tests.fakes.folder_workspace import FolderWorkspace

FILES = 300
# So few are cut in the session's own process, and enough to be saved; where it does not matter who cuts.
FEW = 56
# So few are one batch for the workers.
SOME = 80
NO_VECTORS = EmbeddingSettings(EmbeddingProvider.NONE)
DEADLY = """
import os, sys
sys.argv = ["worker", *sys.argv[1:]]
from agent_workbench.adapters.retrieval import index_worker
from agent_workbench.adapters.retrieval.index.file_parser import FileParser
index = FileParser.index
def deadly(self, files, stop=None):
    if any(b"poison" in data for data in files.values()):
        os._exit(9)
    return index(self, files, stop)
FileParser.index = deadly
index_worker.main()
"""


class SlowFolder(FolderWorkspace):
    """Reads the first files at once, those from `module_256.py` on when `go` is set."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.go = asyncio.Event()

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        if max(paths, default="") >= "module_256.py":
            await self.go.wait()
        return await super().read_files(paths)


def filled(folder: Path, files: int) -> Path:
    """Return the folder with so many modules in it."""
    body = "\n".join(f"    step_{line} = compute(value_{line})" for line in range(15))
    for number in range(files):
        write(folder / f"module_{number:03}.py", f"def procedure_{number:03}():\n{body}\n")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return filled(tmp_path / "repo", FILES)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return filled(tmp_path / "repo", FEW)


@pytest.fixture
async def retriever(tmp_path: Path) -> AsyncIterator[CodeRetriever]:
    made = make(tmp_path)
    yield made
    await made.close()


def make(tmp_path: Path) -> CodeRetriever:
    return CodeRetriever(RetrievalSettings(embeddings=NO_VECTORS), tmp_path / "cache")


async def find(retriever: CodeRetriever, folder: FolderWorkspace, text: str, *, complete: bool = True) -> list[str]:
    return places(await retriever.search(folder, CodeQuery(text), 1, complete=complete))


async def first_batch(retriever: CodeRetriever, folder: FolderWorkspace) -> None:
    """Return when something is indexed."""
    while not retriever.status(folder).done:  # noqa: ASYNC110 - nobody tells when a batch is done
        await asyncio.sleep(0.01)


async def test_what_is_ready_is_searched_while_the_rest_is_indexed(root: Path, retriever: CodeRetriever) -> None:
    folder = SlowFolder(root)
    assert await find(retriever, folder, "procedure_000", complete=False) == []
    complete = asyncio.create_task(find(retriever, folder, "procedure_199"))
    await first_batch(retriever, folder)
    assert await find(retriever, folder, "procedure_000", complete=False) == ["module_000.py"]
    status = retriever.status(folder)
    assert (status.done, status.total, status.files, status.complete) == (256, FILES, 256, False)
    assert not complete.done()
    folder.go.set()
    assert await complete == ["module_199.py"]
    assert retriever.status(folder).files == FILES
    assert retriever.parsed_files == FILES


async def test_the_next_start_reads_nothing_that_did_not_change(root: Path, tmp_path: Path) -> None:
    await wait_until_old(root)
    first, second = make(tmp_path), make(tmp_path)
    await first.build(FolderWorkspace(root))
    await first.close()
    write(root / "module_007.py", "def other_procedure():\n    return 7\n")
    (root / "module_008.py").unlink()
    folder = FolderWorkspace(root)
    await second.build(folder)
    assert folder.reads == ["module_007.py"]
    assert second.parsed_files == 1
    assert second.status(folder).files == FILES - 1
    assert await find(second, folder, "procedure_199") == ["module_199.py"]
    await second.close()


@pytest.mark.parametrize("harm", ["", "cut", "flipped", "other settings"])
async def test_a_harmed_or_foreign_snapshot_is_not_believed(small: Path, tmp_path: Path, harm: str) -> None:
    await wait_until_old(small)
    first = make(tmp_path)
    await first.build(FolderWorkspace(small))
    snapshot = await asyncio.to_thread(CacheFolder(tmp_path / "cache").snapshot_of, str(small))
    data = snapshot.read_bytes()
    half = len(data) // 2
    snapshot.write_bytes(data[:half] if harm == "cut" else data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :])
    if harm in {"", "other settings"}:
        snapshot.write_bytes(data if harm else b"")
    settings = RetrievalSettings(max_chunk_tokens=300 if harm == "other settings" else 400, embeddings=NO_VECTORS)
    later = CodeRetriever(settings, tmp_path / "cache")
    folder = FolderWorkspace(small)
    await later.build(folder)
    assert len(folder.reads) == FEW
    assert await find(later, folder, "procedure_042") == ["module_042.py"]
    await later.close()


async def test_another_worktree_of_the_repo_takes_over_what_has_the_same_content(small: Path, tmp_path: Path) -> None:
    (small / ".git" / "worktrees" / "other").mkdir(parents=True)
    write(small / ".git" / "worktrees" / "other" / "commondir", "../..\n")
    first, second = make(tmp_path), make(tmp_path)
    await first.build(FolderWorkspace(small))
    other = tmp_path / "other"
    write(other / ".git", f"gitdir: {small}/.git/worktrees/other\n")
    for number in range(0, FEW, 2):
        name = f"module_{number:03}.py"
        write(other / name, (small / name).read_text())
    for chunk_cache in (tmp_path / "cache").glob("chunks-*"):
        chunk_cache.unlink()
    folder = FolderWorkspace(other)
    assert await find(second, folder, "procedure_042") == ["module_042.py"]
    assert await find(second, folder, "procedure_043") != ["module_043.py"]
    assert (second.parsed_files, second.status(folder).files) == (0, FEW // 2)
    await second.close()


async def test_two_sessions_index_one_folder_at_once(root: Path, tmp_path: Path) -> None:
    sessions = [make(tmp_path), make(tmp_path)]
    found = await asyncio.gather(*(find(each, FolderWorkspace(root), "procedure_123") for each in sessions))
    assert found == [["module_123.py"]] * 2
    assert all(each.parsed_files <= FILES for each in sessions)
    for each in sessions:
        await each.close()
    later, folder = make(tmp_path), FolderWorkspace(root)
    await later.build(folder)
    assert later.parsed_files == 0


@pytest.mark.slow
async def test_a_file_that_kills_a_worker_is_left_out_and_nothing_else_is(
    tmp_path: Path, retriever: CodeRetriever
) -> None:
    root = filled(tmp_path / "repo", SOME)
    write(root / "module_050.py", "poison = 1\n" * 30)
    retriever.workers.arguments = ["-c", DEADLY, str(tmp_path / "cache"), "400"]
    folder = FolderWorkspace(root)
    assert await find(retriever, folder, "procedure_051") == ["module_051.py"]
    status = retriever.status(folder)
    assert (status.files, status.left_out, status.binary, status.complete) == (SOME - 1, 0, 1, True)
    # Nor is it brought into the session's own process when it alone is new.
    write(root / "module_050.py", "poison = 2\n" * 30)
    await retriever.build(folder)
    status = retriever.status(folder)
    assert (status.files, status.binary) == (SOME - 1, 1)


async def test_what_is_no_text_is_counted_and_not_read_again(small: Path, tmp_path: Path) -> None:
    (small / "picture.png").write_bytes(b"\x89PNG\0")
    await wait_until_old(small)
    first, second, folder = make(tmp_path), make(tmp_path), FolderWorkspace(small)
    await first.build(folder)
    assert (first.status(folder).files, first.status(folder).binary) == (FEW, 1)
    await first.close()
    folder.reads.clear()
    await second.build(folder)
    assert (second.status(folder).files, second.status(folder).binary, folder.reads) == (FEW, 1, [])
    (small / "picture.png").write_text("text by now")
    await second.build(folder)
    assert (second.status(folder).files, second.status(folder).binary) == (FEW + 1, 0)
    await second.close()


async def test_what_a_file_of_secrets_held_goes_from_the_cache(small: Path, tmp_path: Path) -> None:
    write(small / "deploy.py", "swordfish = 'of the deployment'\n")
    await wait_until_old(small)
    first, second, folder = make(tmp_path), make(tmp_path), FolderWorkspace(small)
    await first.build(folder)
    await first.close()
    cached = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert any(b"swordfish" in path.read_bytes() for path in cached)
    (small / "deploy.py").rename(small / ".env")
    await second.build(folder)
    await second.close()
    assert (await asyncio.to_thread(CacheFolder(tmp_path / "cache").facts)).blobs == FEW
    later = make(tmp_path)
    assert await find(later, folder, "swordfish") != [".env"]
    await later.close()


async def test_an_index_that_cannot_be_saved_is_searched_and_says_so(small: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    made, folder = make(tmp_path), FolderWorkspace(small)
    assert await find(made, folder, "procedure_023") == ["module_023.py"]
    assert made.status(folder).unsaved == os.strerror(errno.ENOTDIR)
    await made.close()


async def test_a_folder_that_vanishes_while_it_is_indexed_is_no_harm(root: Path, retriever: CodeRetriever) -> None:
    folder = SlowFolder(root)
    building = asyncio.create_task(retriever.build(folder))
    await first_batch(retriever, folder)
    for path in root.iterdir():
        path.unlink()
    root.rmdir()
    folder.go.set()
    await building
    assert await find(retriever, folder, "procedure_000") == []
    assert retriever.status(folder).files == 0


async def test_the_cache_tells_what_it_holds_and_forgets_what_it_is_told_to(
    small: Path, tmp_path: Path, retriever: CodeRetriever
) -> None:
    cache = CacheFolder(tmp_path / "cache")
    assert (await asyncio.to_thread(cache.facts)).total_bytes == (await asyncio.to_thread(cache.clear)) == 0
    await retriever.build(FolderWorkspace(small))
    facts = await asyncio.to_thread(cache.facts)
    assert facts.blobs == FEW
    assert facts.folder == str(tmp_path / "cache")
    (snapshot,) = facts.snapshots
    assert (snapshot.root, snapshot.there) == (str(small), True)
    assert snapshot.bytes > 0
    assert min(facts.bytes_by_kind["pieces"], facts.bytes_by_kind["snapshots"]) > 0
    assert (await asyncio.to_thread(cache.clear, str(small))) >= snapshot.bytes
    assert (await asyncio.to_thread(cache.facts)).snapshots == ()
    assert (await asyncio.to_thread(cache.facts)).blobs == FEW
    assert (await asyncio.to_thread(cache.clear)) > 0
    assert (await asyncio.to_thread(cache.facts)).total_bytes == 0


async def test_the_index_of_a_folder_that_is_gone_goes_when_another_is_saved(
    small: Path, tmp_path: Path, retriever: CodeRetriever
) -> None:
    gone = tmp_path / "gone"
    for number in range(60):
        write(gone / f"{number}.py", f"name_{number} = 1\n")
    await retriever.build(FolderWorkspace(gone))
    cache = CacheFolder(tmp_path / "cache")
    assert [each.root for each in (await asyncio.to_thread(cache.facts)).snapshots] == [str(gone)]
    for path in gone.iterdir():
        path.unlink()
    gone.rmdir()
    assert not (await asyncio.to_thread(cache.facts)).snapshots[0].there
    await retriever.build(FolderWorkspace(small))
    assert [each.root for each in (await asyncio.to_thread(cache.facts)).snapshots] == [str(small)]


class HeldFolder(FolderWorkspace):
    """Two batches without `module_299.py` wait until `go` is set."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.go = asyncio.Event()
        self.held = 0

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        if "module_299.py" not in paths and self.held < 2:
            self.held += 1
            await self.go.wait()
        return await super().read_files(paths)


async def test_the_first_search_of_a_large_folder_waits_for_the_files_with_its_words_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.folder_index._MANY_FILES", 100)
    monkeypatch.setattr("agent_workbench.adapters.retrieval.folder_index.MAX_FILES", 1)
    monkeypatch.setattr("agent_workbench.adapters.retrieval.change_finder._BATCH_FILES", 20)
    folder = HeldFolder(filled(tmp_path / "large", FILES))
    retriever = CodeRetriever(RetrievalSettings(embeddings=NO_VECTORS), tmp_path / "cache")
    try:
        found = await retriever.search(folder, CodeQuery("procedure_299"), 1)
        assert places(found) == ["module_299.py"]
        status = retriever.status(folder)
        assert not status.complete
        assert 0 < status.files < FILES
        folder.go.set()
        await retriever.build(folder)
        status = retriever.status(folder)
        assert status.complete
        assert status.files == FILES
        assert places(await retriever.search(folder, CodeQuery("procedure_010"), 1)) == ["module_010.py"]
    finally:
        await retriever.close()


def test_likely_files_have_the_rarest_words_of_a_query() -> None:
    likely = LikelyFiles(("shelf", "rack", "it", "\udcff" * 3))
    likely.add({f"src/{number}.py": b"the shelf" for number in range(9)})
    likely.add({"src/rack.py": b"", "src/both.py": b"SHELF and Rack", "src/none.py": b"it"})
    assert likely.best()[:2] == ["src/rack.py", "src/both.py"]
    assert "src/none.py" not in likely.best()
