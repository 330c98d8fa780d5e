"""Code that the user asks for, and what a new failure brings: pinned or told at the prompt's end, never in between."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.intents import DropChunk, FindCode, PinChunk
from agent_workbench.core.outcomes import CodeFound
from agent_workbench.core.plan import PathScope
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.text.mentions import FileRange
from agent_workbench.engine.task.code_lookup import parse_code_place
from agent_workbench.engine.tools.check_runs import MOST_CHARS, POINTS_TO
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, WRONG_ANSWER, a_stage, call, change, kinds, reflexion, task
from tests.engine.test_compaction import of, text_of
from tests.engine.test_executor import run
from tests.fakes.ports import GivenChunks, Hang

PATHS = ("app.py", "docs/a guide.md", "src/shop/app.py", "src/shop/cart.py", "total")
LONG = "\n".join(f"line {number}" for number in range(1, 951)) + "\n"
FILES = {**WRONG_ANSWER, "src/cart.py": "def total():\n    return 0\n", "long.txt": LONG, "bin.dat": "\0"}
HANG = [Hang("Thought: hm")]


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("app.py", FileRange("app.py")),
        ("./app.py:12", FileRange("app.py", 12)),
        ("cart.py:3-9", FileRange("src/shop/cart.py", 3, 9)),
        ("shop/cart.py:3:", FileRange("src/shop/cart.py", 3)),
        ("docs/a guide.md", FileRange("docs/a guide.md")),
        ("total", FileRange("total")),
        ("cart", None),
        ("cart totals: 12", None),
        ("two\nlines", None),
        ("nowhere.py:4", None),
        ("", None),
    ],
)
def test_a_place_is_a_file_that_there_is(asked: str, place: FileRange | None) -> None:
    assert parse_code_place(asked, PATHS) == place


async def test_a_place_is_pinned_and_told_once_at_the_end_of_the_prompt(tmp_path: Path) -> None:
    approvals = replace(OPEN, diff=Approval.ASK)
    sayings = [change("wrong", "wronger"), reflexion(), change("wronger", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=approvals, start=FILES) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.DIFF)
        for asked in ("cart.py", "long.txt:7-9", "long.txt:500", "cart.py:1-2"):
            found = await front.outcome(FindCode(asked))
            assert isinstance(found, CodeFound)
            assert found.asked == asked
        places = ["src/cart.py:1-2", "long.txt:7-9", "long.txt:480-520"]
        assert [event.chunk.place for event in stage.events if isinstance(event, e.ChunkPinned)] == places, (
            "what is pinned is not pinned anew"
        )
        await front.submit(PinChunk(places[0], pinned=False))
        await front.submit(PinChunk(places[0]))
        await front.submit(DropChunk(places[1]))
        await front.until(lambda it: it.state.run and places[1] in it.state.run.dropped)
        await front.approve(Permission.DIFF)
        await front.gate(Permission.DIFF)
        first, last = text_of(stage, 0), text_of(stage, -1)
        assert last.startswith(first)
        assert last.count("def total():\n    return 0") == 1
        assert (
            "The user pinned long.txt:7-9: it matters, keep to it.\nPiece 2: long.txt:7-9\n```\nline 7\nline 8\nline 9"
            in last
        )
        assert "The user says that long.txt:7-9 does not matter" in last


async def test_words_bring_a_choice_of_what_may_be_read_and_one_is_taken(tmp_path: Path) -> None:
    chunks = tuple(Chunk(path, 1, 1, f"in {path}", 0.5) for path in ("src/cart.py", "secret/x.py"))
    retriever = GivenChunks()
    scoped = replace(task(), scope=PathScope(allowed_read_globs=("src/**", "answer.txt")))
    skills = {"tidy-cart": "Tidy it.", "other": "Other."}
    async with a_stage(
        tmp_path, HANG, approvals=OPEN, retriever=retriever, start=FILES, tasks=(scoped,), skills=skills
    ) as stage:
        async with in_front_of(stage) as front:
            assert "no task is being worked on" in await front.notice(FindCode("cart"))
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            retriever.chunks = chunks
            assert "no code at src/card.py:1-1" in await front.notice(PinChunk("src/card.py:1-1"))
            found = await front.outcome(FindCode("cart totals"))
            assert found == CodeFound("cart totals", chunks[:1])
            assert retriever.queries[-1].startswith("cart totals")
            await front.submit(PinChunk("src/cart.py:1-1"))
            await front.until(lambda it: it.state.run and it.state.run.pinned)
            by_name = await front.outcome(FindCode("tidy"))
            assert isinstance(by_name, CodeFound)
            assert [each.name for each in by_name.skills] == ["tidy-cart"]
        assert kinds(stage.events).count("ChunkPinned") == 1


async def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    async with a_stage(tmp_path, HANG, approvals=OPEN, start=FILES) as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert "has 2 lines, line 9 was asked for" in await front.notice(FindCode("src/cart.py:9"))
        assert "is binary" in await front.notice(FindCode("bin.dat"))
        pieces = await front.outcome(FindCode("long.txt"))
        assert isinstance(pieces, CodeFound)
        assert [chunk.first_line for chunk in pieces.chunks] == list(range(1, 951, 100))
        assert not of(stage, e.ChunkPinned)


class Later(GivenChunks):
    """Finds the first of its pieces for the task, and all of them for whatever is asked then."""

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        found = await super().search(sources, query, limit, complete=complete)
        return found[:1] if len(self.queries) == 1 else found


async def test_a_new_failure_brings_code_that_was_not_shown_and_an_old_one_nothing(tmp_path: Path) -> None:
    texts = {"answer.txt": "wrong", "src/cart.py": "def total():", "a.py": "x" * MOST_CHARS, "b.py": "b"}
    retriever = Later(tuple(Chunk(path, 1, 1, text, 0.5) for path, text in texts.items()))
    sayings = [
        *(change("wrong", "bad"), reflexion(), change("bad", "worse"), reflexion()),
        *(change("# Hello", "# Bye", "README.md"), reflexion(), call("search_code", '{"query": "h"}')),
        *(change("worse", "right"), FINISH),
    ]
    tasks = (task(accept=("cat answer.txt && grep -q right answer.txt",)),)
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True, retriever=retriever, tasks=tasks) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
        told = [
            event for event in stage.events if isinstance(event, e.ActionFinished) and "Checks f" in event.observation
        ]
        brought = [[chunk.path for chunk in event.shown] for event in told]
        assert brought == [[], ["src/cart.py"], ["a.py"], []], "before any change, two new failures, the last one again"
        assert told[1].observation.endswith(f"{POINTS_TO}\n\nsrc/cart.py:1-1\ndef total():")
        assert retriever.queries[0].endswith("\nwrong")
        assert retriever.queries[-1] == "h\nworse", "the model's own search knows what failed last"
