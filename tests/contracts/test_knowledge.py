"""Contract of `core.ports.search.Knowledge`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.knowledge import KnowledgeNote
from agent_workbench.core.ports.search import Knowledge
from agent_workbench.subjects.knowledge.adapter import KnowledgeFolder
from tests.fakes.stores import MemoryKnowledge

IMPLEMENTATIONS: dict[str, Callable[[Path], Knowledge]] = {
    "memory": lambda _: MemoryKnowledge(),
    "folder": KnowledgeFolder,
}


@pytest.fixture(params=IMPLEMENTATIONS)
def knowledge(request: pytest.FixtureRequest, tmp_path: Path) -> Knowledge:
    return IMPLEMENTATIONS[request.param](tmp_path)


class TestKnowledge:
    """Notes are found by their words and never overwritten unseen."""

    async def test_nothing_is_known_at_first(self, knowledge: Knowledge) -> None:
        assert await knowledge.notes() == ()
        assert await knowledge.search("anything", 5) == ()

    async def test_notes_are_listed_by_name(self, knowledge: Knowledge) -> None:
        for name in ("tests", "money"):
            await knowledge.write(KnowledgeNote(name, f"about {name}"), None)
        assert await knowledge.notes() == (KnowledgeNote("money", "about money"), KnowledgeNote("tests", "about tests"))

    async def test_the_best_fit_comes_first(self, knowledge: Knowledge) -> None:
        await knowledge.write(KnowledgeNote("rounding", "round money round half even"), None)
        await knowledge.write(KnowledgeNote("money", "money is decimal"), None)
        await knowledge.write(KnowledgeNote("tests", "run pytest"), None)
        hits = await knowledge.search("round money", 5)
        assert [hit.note.name for hit in hits] == ["rounding", "money"]
        assert hits[0].score > hits[1].score
        assert hits[0].words == ("round", "money")
        assert hits[0].signals
        assert [hit.note.name for hit in await knowledge.search("round money", 1)] == ["rounding"]
        assert await knowledge.search("zebra", 5) == ()

    async def test_a_note_is_read_by_its_name(self, knowledge: Knowledge) -> None:
        await knowledge.write(KnowledgeNote("money", "money is decimal"), None)
        assert await knowledge.read("money") == KnowledgeNote("money", "money is decimal")
        assert await knowledge.read("gone") is None
        assert not await knowledge.problem()
        await knowledge.close()

    async def test_a_note_is_replaced_only_as_it_was_read(self, knowledge: Knowledge) -> None:
        await knowledge.write(KnowledgeNote("money", "one"), None)
        for before in (None, "other"):
            with pytest.raises(StorageError):
                await knowledge.write(KnowledgeNote("money", "two"), before)
        await knowledge.write(KnowledgeNote("money", "two"), "one")
        assert await knowledge.notes() == (KnowledgeNote("money", "two"),)
        with pytest.raises(StorageError):
            await knowledge.write(KnowledgeNote("gone", "two"), "one")

    @pytest.mark.parametrize("name", ["", "../x", "a/b", "A", ".hidden", "a b", "a..b", "a-", "x" * 81, "nul\0"])
    async def test_a_name_that_is_no_name_is_refused(self, knowledge: Knowledge, name: str) -> None:
        with pytest.raises(UsageError):
            await knowledge.write(KnowledgeNote(name, "text"), None)
        assert await knowledge.notes() == ()
