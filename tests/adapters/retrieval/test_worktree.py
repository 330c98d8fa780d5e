"""The retriever over a real git worktree."""

import os
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.core.settings import RetrievalSettings
from tests.adapters.git.user import User, make_home, make_repo


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(make_home(tmp_path / "home")))
    return make_repo(tmp_path / "repo")


async def test_what_is_tracked_written_and_restored_is_found_and_what_is_ignored_is_not(
    tmp_path: Path, user: User
) -> None:
    user.write("src/shelf.py", "def put_on_shelf(book):\n    return book\n")
    user.write(".gitignore", "build/\n")
    user.commit("Add a shelf")
    workspace = await Repository(user.root, tmp_path / "worktrees").open(user.request())
    retriever = CodeRetriever(RetrievalSettings(), tmp_path / "cache")
    try:
        await retriever.prepare(workspace)
        assert (await retriever.search(workspace, CodeQuery("book shelf"), 1))[0].symbol == "put_on_shelf"

        root = Path(workspace.facts.path)
        (root / "build").mkdir()
        (root / "build" / "shelf.py").write_text("def built_shelf(book):\n    return book\n")
        (root / "untracked.py").write_text("def lend_shelf_book(book):\n    return book\n")
        found = await retriever.search(workspace, CodeQuery("book shelf"), 9)
        assert {chunk.path for chunk in found} == {"src/shelf.py", "untracked.py"}

        before = await workspace.read("src/shelf.py")
        after = FileContent(b"def take_from_rack(book):\n    return book\n")
        tree = await workspace.write([FileChange("src/shelf.py", before, after)], workspace.facts.tree)
        assert (await retriever.search(workspace, CodeQuery("rack"), 1))[0].symbol == "take_from_rack"
        await workspace.put_back(workspace.facts.tree, ["src/shelf.py"])
        assert (await retriever.search(workspace, CodeQuery("rack take"), 9)) == ()
        assert tree != workspace.facts.tree
    finally:
        await retriever.close()
        await workspace.release(keep=False)
