"""The retriever over real folders: what is found, what is read again, and what is never fatal."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.search import Retriever
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, PastCommit, SignalKind
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from tests.adapters.retrieval.snippets import SNIPPETS
from tests.fakes.folder_workspace import FolderWorkspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    for name, (text, _) in SNIPPETS.items():
        write(folder / "src" / name, text)
    write(folder / "tests" / "test_stack.py", "def test_the_top_of_a_stack():\n    assert Stack([1]).top == 1\n")
    write(folder / "README.md", "# Stacks\n\nA stack has a top.\n")
    return folder


@pytest.fixture
def retriever(tmp_path: Path) -> CodeRetriever:
    return make(tmp_path)


def make(tmp_path: Path, **settings: object) -> CodeRetriever:
    settings = {"embeddings": EmbeddingSettings(EmbeddingProvider.NONE), **settings}
    return CodeRetriever(RetrievalSettings(**settings), tmp_path / "cache")  # type: ignore[arg-type]  # for brevity


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


class TellingWorkspace(FolderWorkspace):
    """Tells when so many files were read."""

    def __init__(self, root: Path, after: int) -> None:
        super().__init__(root)
        self.reached = asyncio.Event()
        self._after = after

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        if len(self.reads) >= self._after:
            self.reached.set()
        return await super().read_files(paths)


def settle(root: Path) -> None:
    """Make all files look old, so that none is read again only because it might still be changing."""
    for path in root.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)


async def wait_until_old(root: Path) -> None:
    """Wait until no file looks as if it might still be changing (a changed time cannot be set)."""
    newest = max(path.lstat().st_ctime_ns for path in root.rglob("*"))
    await asyncio.sleep(max(0.0, 0.1 - (time.time_ns() - newest) / 1e9))


def places(chunks: tuple[Chunk, ...]) -> list[str]:
    return [chunk.path for chunk in chunks]


async def test_chunks_are_lines_of_the_file_with_symbol_reasons_and_cost(root: Path, retriever: CodeRetriever) -> None:
    port: Retriever = retriever
    chunk = (await port.search(FolderWorkspace(root), CodeQuery("where is an item added to the cart"), 3))[0]
    assert (chunk.path, chunk.symbol) == ("src/cart.js", "addItem")
    lines = (root / chunk.path).read_text().split("\n")
    assert chunk.text == "\n".join(lines[chunk.first_line - 1 : chunk.last_line])
    assert chunk.why[:2] in {("item", "cart"), ("cart", "item")}
    assert chunk.tokens == -(-len(chunk.text) // 4)
    assert chunk.score > 0


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("listen on the server", "src/server.go"),
        ("pushItemToQueue", "src/queue.rs"),
        ("add_item", "src/cart.js"),
        ("distance between points", "src/App.swift"),
        ("docker push", "src/deploy.sh"),
        ("billing invoice total", "src/user.rb"),
        ("login form", "src/index.html"),
    ],
)
async def test_words_find_code_however_they_are_spelled(
    root: Path, retriever: CodeRetriever, query: str, path: str
) -> None:
    assert places(await retriever.search(FolderWorkspace(root), CodeQuery(query), 3))[0] == path


async def test_tests_and_documents_stand_behind_unless_they_are_asked_for(root: Path, retriever: CodeRetriever) -> None:
    workspace = FolderWorkspace(root)
    assert places(await retriever.search(workspace, CodeQuery("top of the stack"), 3))[0] == "src/stack.py"
    assert (
        places(await retriever.search(workspace, CodeQuery("test the top of the stack"), 3))[0] == "tests/test_stack.py"
    )


async def test_the_place_of_a_stack_trace_comes_first(root: Path, retriever: CodeRetriever) -> None:
    trace = 'File "/somewhere/else/src/stack.py", line 7, in top\n    server queue cart draw distance listen push item'
    chunk = (await retriever.search(FolderWorkspace(root), CodeQuery(trace), 5))[0]
    assert (chunk.path, chunk.symbol) == ("src/stack.py", "Stack")
    assert chunk.first_line <= 7 <= chunk.last_line
    assert chunk.why[0] == "stack.py:7"
    named = (await retriever.search(FolderWorkspace(root), CodeQuery("cart stack queue in server.go"), 5))[0]
    assert named.path == "src/server.go"


async def test_only_what_changed_is_read_and_parsed_again(root: Path, retriever: CodeRetriever) -> None:
    workspace = FolderWorkspace(root)
    await wait_until_old(root)
    await retriever.search(workspace, CodeQuery("stack"), 0)
    assert sorted(workspace.reads) == list(await workspace.list_files())
    parsed = retriever.parsed_files
    workspace.reads.clear()

    write(root / "src" / "stack.py", "def brand_new_thing(shelf):\n    return shelf\n")
    assert places(await retriever.search(workspace, CodeQuery("brand new shelf"), 1)) == ["src/stack.py"]
    assert set(workspace.reads) == {"src/stack.py"}
    assert retriever.parsed_files == parsed + 1

    (root / "src" / "stack.py").unlink()
    assert "src/stack.py" not in places(await retriever.search(workspace, CodeQuery("brand new shelf"), 9))
    write(root / "src" / "moved.py", "def brand_new_thing(shelf):\n    return shelf\n")
    assert places(await retriever.search(workspace, CodeQuery("brand new shelf"), 1)) == ["src/moved.py"]
    assert retriever.parsed_files == parsed + 1


async def test_a_change_that_keeps_size_and_time_is_seen(root: Path, retriever: CodeRetriever) -> None:
    workspace = FolderWorkspace(root)
    file = root / "src" / "same.py"
    write(file, "def first_word():\n    pass\n")
    settle(root)
    assert places(await retriever.search(workspace, CodeQuery("first_word"), 1)) == ["src/same.py"]
    write(file, "def other_word():\n    pass\n")
    settle(root)
    found = await retriever.search(workspace, CodeQuery("other_word"), 1)
    assert found[0].symbol == "other_word"


async def test_many_changes_in_quick_succession_are_all_seen(root: Path, retriever: CodeRetriever) -> None:
    workspace = FolderWorkspace(root)
    for number in range(30):
        write(root / "src" / "busy.py", f"def name{number:02}():\n    pass\n")
        assert (await retriever.search(workspace, CodeQuery("busy.py"), 1))[0].symbol == f"name{number:02}"


async def test_worktrees_and_later_runs_share_the_cache(root: Path, tmp_path: Path, retriever: CodeRetriever) -> None:
    await retriever.search(FolderWorkspace(root), CodeQuery("stack"), 1)
    assert retriever.parsed_files == len(SNIPPETS) + 2
    other = tmp_path / "worktree"
    for name, (text, _) in SNIPPETS.items():
        write(other / "lib" / name, text)
    found = await retriever.search(FolderWorkspace(other), CodeQuery("brand stack"), 1)
    assert retriever.parsed_files == len(SNIPPETS) + 2
    later = make(tmp_path)
    assert await later.search(FolderWorkspace(other), CodeQuery("brand stack"), 1) == found
    assert later.parsed_files == 0
    smaller = make(tmp_path, max_chunk_tokens=20)
    await smaller.search(FolderWorkspace(other), CodeQuery("stack"), 1)
    assert smaller.parsed_files == len(SNIPPETS)


async def test_a_corrupt_cache_is_made_anew(root: Path, tmp_path: Path, retriever: CodeRetriever) -> None:
    workspace = FolderWorkspace(root)
    before = await retriever.search(workspace, CodeQuery("stack"), 3)
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(b"garbage" * 1_000)
    again = make(tmp_path)
    assert await again.search(workspace, CodeQuery("stack"), 3) == before
    assert again.parsed_files > 0
    last = make(tmp_path)
    assert await last.search(workspace, CodeQuery("stack"), 3) == before
    assert last.parsed_files == 0


async def test_a_cache_that_cannot_be_made_is_done_without(root: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    assert await make(tmp_path).search(FolderWorkspace(root), CodeQuery("stack"), 3)


async def test_weird_files_are_indexed_or_left_out_and_never_fatal(tmp_path: Path, retriever: CodeRetriever) -> None:
    root = tmp_path / "weird"
    write(root / "good.py", "def needle_here():\n    return 1\n")
    write(root / "empty.py", "")
    write(root / "blank.py", "\n \n\t\n")
    write(root / "crlf.py", "def needle_crlf():\r\n    return 1\r\n")
    write(root / "long.py", "needle_long = '" + "x y " * 90_000 + "'")
    write(root / "minified.js", "var needle_long = '" + "x y " * 90_000 + "';")
    write(root / "strange name\n.py", "def needle_name():\n    return 1\n")
    write(root / "bom.py", "\ufeffdef needle_bom():\n    return 1\n")
    write(root / "noending", "needle_plain text")
    write(root / "large.py", "needle = 1\n" * 40_000)
    (root / "invalid.py").write_bytes(b"# gr\xfc\xdfe\ndef needle_invalid():\n    return '\xff\xfe'\n")
    (root / "binary.py").write_bytes(b"needle\0needle")
    (root / "utf16.py").write_bytes("needle = 1\n".encode("utf-16"))
    with (root / "huge.py").open("wb") as huge:
        huge.truncate(50_000_000)
    (root / "link.py").symlink_to(root / "good.py")
    (root / "broken.py").symlink_to("nowhere")
    (root / "secret.py").write_text("needle = 1\n")
    (root / "secret.py").chmod(0)
    os.mkfifo(root / "pipe.py")
    workspace = FolderWorkspace(root)
    chunks = {chunk.path: chunk for chunk in await retriever.search(workspace, CodeQuery("needle"), 50)}
    wanted = {"good.py", "crlf.py", "long.py", "strange name\n.py", "bom.py", "noending", "invalid.py"}
    assert wanted <= set(chunks)
    assert set(chunks) <= wanted | {"secret.py"}  # root may read it
    assert chunks["crlf.py"].text == "def needle_crlf():\r\n    return 1\r"
    assert "gr\ufffd\ufffde" in chunks["invalid.py"].text
    assert chunks["long.py"].text.endswith("characters cut …")
    assert chunks["long.py"].tokens < 2_000
    assert "huge.py" not in workspace.reads


async def test_excluded_files_are_not_even_read(root: Path, tmp_path: Path) -> None:
    workspace = FolderWorkspace(root)
    found = await make(tmp_path, exclude=("src/*.py", "**/*.md")).search(workspace, CodeQuery("stack top"), 9)
    assert places(found) == ["tests/test_stack.py"]
    assert not {"src/stack.py", "README.md"} & set(workspace.reads)


async def test_a_repo_of_nothing_or_of_one_file_is_searched(tmp_path: Path, retriever: CodeRetriever) -> None:
    root = tmp_path / "small"
    root.mkdir()
    assert await retriever.search(FolderWorkspace(root), CodeQuery("anything"), 5) == ()
    write(root / "only.py", "def only_one():\n    return 1\n")
    assert places(await retriever.search(FolderWorkspace(root), CodeQuery("the only one"), 5)) == ["only.py"]
    assert await retriever.search(FolderWorkspace(root), CodeQuery("nothing of it"), 5) == ()
    assert await retriever.search(FolderWorkspace(root), CodeQuery(""), 5) == ()
    assert await retriever.search(FolderWorkspace(root), CodeQuery("only"), 0) == ()


async def test_at_most_three_chunks_of_a_file(tmp_path: Path, retriever: CodeRetriever) -> None:
    root = tmp_path / "one"
    apart = "    # nothing that anybody looks for\n" * 40 + "\n\ndef hay():\n" + "    # hay\n" * 40
    write(root / "many.py", "\n\n".join(f"def needle_{number}():\n{apart}    return needle\n" for number in range(20)))
    write(root / "other.py", "def haystack():\n    return 'needle'\n")
    found = places(await retriever.search(FolderWorkspace(root), CodeQuery("needle"), 10))
    assert sorted(found) == ["many.py"] * 3 + ["other.py"]


async def test_equal_searches_give_equal_answers(root: Path, tmp_path: Path) -> None:
    first = await make(tmp_path).search(FolderWorkspace(root), CodeQuery("draw the push of an item"), 10)
    (tmp_path / "again").mkdir()
    assert (
        await make(tmp_path / "again").search(FolderWorkspace(root), CodeQuery("draw the push of an item"), 10) == first
    )


async def test_the_first_search_knows_the_past_already(root: Path, retriever: CodeRetriever) -> None:
    class Remembering(FolderWorkspace):
        async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
            told = {"README.md": "Mend the flux capacitor", "src/a.py": "Sort", "src/b.py": "Join", "src/c.py": "Wait"}
            return tuple(PastCommit(CommitId("c" * 40), message, (path,)) for path, message in told.items())

    (found,) = await retriever.search(Remembering(root), CodeQuery("flux capacitor"), 1)
    assert found.path == "README.md"
    assert SignalKind.HISTORY in {signal.kind for signal in found.signals}


async def test_preparing_builds_in_the_background_and_tells_how_far_it_is(root: Path, retriever: CodeRetriever) -> None:
    workspace = FolderWorkspace(root)
    await wait_until_old(root)
    await retriever.prepare(workspace)
    total = len(await workspace.list_files())
    assert (retriever.status(workspace).done, retriever.status(workspace).total) == (total, total)
    workspace.reads.clear()
    found = await retriever.search(workspace, CodeQuery("stack"), 1)
    assert set(workspace.reads) == set(places(found))


async def test_preparing_what_is_not_there_is_told_by_the_search_alone(
    tmp_path: Path, retriever: CodeRetriever
) -> None:
    absent = FolderWorkspace(tmp_path / "absent")
    await retriever.prepare(absent)
    assert retriever.status(absent).total == 0
    await retriever.close()


@pytest.mark.slow
async def test_a_search_that_is_cancelled_stops_soon_and_the_next_one_is_whole(tmp_path: Path) -> None:
    root = tmp_path / "large"
    for number in range(900):
        body = "\n".join(f"    step_{number}_{line} = compute(value_{line})" for line in range(40))
        write(root / f"module_{number}.py", f"def procedure_{number}():\n{body}\n")
    retriever = make(tmp_path)
    workspace = TellingWorkspace(root, after=700)
    task = retriever.prepare(workspace)
    await workspace.reached.wait()
    await retriever.close()
    assert task.cancelled()
    assert 0 < retriever.parsed_files < 900
    assert 0 < retriever.status(workspace).done < retriever.status(workspace).total == 900
    assert places(await retriever.search(workspace, CodeQuery("procedure_899"), 1)) == ["module_899.py"]
    assert retriever.parsed_files <= 900


async def test_searches_at_once_wait_for_each_other(root: Path, retriever: CodeRetriever) -> None:
    workspace = FolderWorkspace(root)
    answers = await asyncio.gather(*(retriever.search(workspace, CodeQuery("stack top"), 3) for _ in range(5)))
    assert len(set(answers)) == 1
    assert retriever.parsed_files == len(SNIPPETS) + 2


async def test_symbols_complete_what_is_typed_from_what_is_indexed_so_far(
    retriever: CodeRetriever, tmp_path: Path
) -> None:
    write(
        tmp_path / "repo" / "a.py",
        "class Cart:\n    def total(self):\n        return 1\n\n\ndef total_of():\n    ...\n",
    )
    write(tmp_path / "repo" / "b.py", "def subtotal():\n    ...\n")
    sources = FolderWorkspace(tmp_path / "repo")
    assert await retriever.symbols(sources, "total", 9) == (), "nothing is indexed, and nobody waits"
    await retriever.build(sources)
    found = await retriever.symbols(sources, "TOTAL", 9)
    assert [each.symbol.rpartition(".")[2] for each in found][-1] == "subtotal"
    assert found[0].place == "a.py:6-7"
    assert (await retriever.symbols(sources, "total", 1)) == found[:1]
    assert await retriever.symbols(sources, "[^", 9) == ()
    await retriever.close()
