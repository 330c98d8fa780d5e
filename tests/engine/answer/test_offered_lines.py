"""Lines that are offered to a diff: those in the prompt, if the files still have them."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import (
    ActionFinished,
    ActionRejected,
    ActionResult,
    Author,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    Event,
    PatchApplied,
    Recorded,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import Purpose
from agent_workbench.core.patch.comparison import Line, SharedBlock, shared_blocks
from agent_workbench.core.patch.values import FileContent
from agent_workbench.core.plan import PathScope
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.engine.answer import grammar_choice as offers
from agent_workbench.engine.answer.grammar_choice import (
    MAX_OFFERED_LINES,
    choose_grammar,
    edit_scope,
    offered_lines,
    possible_steps_grammar,
    shown_chunks,
)
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.task.task_start import start_task
from agent_workbench.engine.tools.reading_tools import MAX_CHOICES
from agent_workbench.engine.tools.registry import builtin_tools
from tests.engine.stage import FINISH, OPEN, T1, a_stage, call, task
from tests.fakes.ports import Cut, GivenChunks, Saying

LINES = ("a", "b", "", "c", "", "d")


def chunk(path: str, first: int, text: str) -> Chunk:
    return Chunk(path, first, first + text.count("\n"), text, 0.0)


def history(*events: Event) -> tuple[Recorded, ...]:
    return tuple(Recorded(seq, "", event, "") for seq, event in enumerate(events))


def finished(*shown: Chunk) -> ActionFinished:
    return ActionFinished(ProposalId("P-1"), ActionResult.OK, "…", shown=shown)


def offered(*chunks: Chunk, lines: tuple[str, ...] = LINES) -> list[int]:
    return list(dict.fromkeys(offered_lines(lines, chunks)))


def test_lines_that_stand_where_they_were_shown() -> None:
    assert offered(chunk("x", 2, "b\n\nc")) == [1, 2, 3]
    assert offered(chunk("x", 5, "\nd"), chunk("x", 1, "a")) == [4, 5, 0]
    assert offered(Chunk("x", 5, 7, "\nd\n", 0.0)) == [4, 5]
    assert offered(chunk("x", 1, "a\r\nb\r")) == [0, 1]


def test_lines_that_moved_are_found_and_those_that_are_gone_are_not() -> None:
    assert offered(chunk("x", 1, "b\n\nc")) == [1, 2, 3]
    assert offered(chunk("x", 40, "x\nc\ny\nd")) == [3, 5]
    assert offered(chunk("x", 1, "nothing\nof it")) == []
    assert offered(chunk("x", 1, ""), lines=()) == []


def test_lines_that_moved_in_a_large_file_are_found_without_reading_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tuple(line for number in range(10_000) for line in ("", f"line {number}"))
    looked_at: list[int] = []

    def counting(old: Sequence[Line], new: Sequence[Line]) -> list[SharedBlock]:
        looked_at.append(len(new))
        return shared_blocks(old, new)

    monkeypatch.setattr(offers, "shared_blocks", counting)
    assert offered(chunk("x", 1, "line 7000\ngone\n\nline 7001"), lines=lines) == [14_001, 14_002, 14_003]
    assert offered(chunk("x", 1, "gone\n"), lines=lines) == []
    assert looked_at == [11]


async def test_a_large_file_is_looked_through_once_and_aside_from_the_loop(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(2_000))
    moved = tuple(chunk("big.txt", 1, f"line {number}\nline {number + 1}") for number in range(1_000, 1_900))
    threads: list[str] = []

    async with a_stage(tmp_path, start={"big.txt": text}) as stage:
        await start_task(stage.session, T1)
        await stage.session.record(CodeRetrieved("q", moved))
        bench = await stage.session.tool_context()
        within = offers._within

        def watched(*arguments: object) -> dict[int, int]:
            threads.append(threading.current_thread().name)
            return within(*arguments)  # type: ignore[arg-type]  # passed on as they come

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(offers, "_within", watched)
            found = await edit_scope(bench.scope, bench.workspace)
        assert [len(each.offered) for each in found.files] == [MAX_OFFERED_LINES]
        assert len(threads) == 1
        assert threads[0] != threading.main_thread().name


async def test_the_files_are_listed_once_for_a_grammar(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await start_task(stage.session, T1)
        bench = await stage.session.tool_context()
        listed = 0

        class Counting:
            async def list_files(self) -> tuple[str, ...]:
                nonlocal listed
                listed += 1
                return await bench.workspace.list_files()

            async def read(self, path: str) -> FileContent | None:
                return await bench.workspace.read(path)

        grammar = await possible_steps_grammar(bench.scope, Counting())
        assert listed == 1
        assert grammar == await choose_grammar(stage.session, Purpose.EXECUTOR)


def test_every_event_that_shows_lines_counts_newest_first() -> None:
    one, two, three, four = (chunk(name, 1, "t") for name in "abcd")
    shown = shown_chunks(
        history(
            CodeRetrieved("q", (one,)),
            ActionRejected(1, "no"),
            finished(two),
            PatchApplied(ProposalId("P-2"), ("c",), "", "", (three,)),
            ChunkPinned(four),
            ChunkPinned(one, pinned=False),
        )
    )
    assert shown == (four, three, two, one)


def test_what_a_compaction_left_out_is_shown_no_more() -> None:
    kept, lost, later = (chunk(name, 1, "t") for name in "abc")
    before = (CodeRetrieved("q", (lost,)), finished(lost))
    compacted = ContextCompacted(3, "so far", Author.MODEL, through_seq=1, pinned=(kept,))
    assert shown_chunks(history(*before, compacted, finished(later))) == (later, kept)
    assert shown_chunks(history(*before, finished(kept), compacted)) == (kept, kept)


async def test_only_files_that_may_be_changed_are_offered(tmp_path: Path) -> None:
    scope = PathScope(allowed_write_globs=("*.txt",), allowed_read_globs=("[!s]*", "*/**"))
    names = ("answer.txt", "other.txt", "README.md", "secret.txt", "memory/n.txt", "gone.txt", "bytes.txt", "void.txt")
    retriever = GivenChunks(tuple(chunk(name, 1, "wrong") for name in names))
    start = {**dict.fromkeys(names, "wrong\n"), "bytes.txt": "wrong\n\0", "void.txt": ""}
    async with a_stage(
        tmp_path, ["?"], tasks=(replace(task(accept=()), scope=scope),), start=start, retriever=retriever
    ) as stage:
        await start_task(stage.session, T1)
        await stage.session.record(CodeRetrieved("q", retriever.chunks))
        folder = Path((await stage.session.workspace()).facts.path)
        (folder / "gone.txt").unlink()
        (folder / "other.txt").unlink()
        (folder / "other.txt").symlink_to("answer.txt")
        bench = await stage.session.tool_context()
        found = await edit_scope(bench.scope, bench.workspace)
    assert [file.path for file in found.files] == ["answer.txt", "void.txt"]


async def test_no_more_lines_than_a_grammar_can_bear(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(2000))
    chunks = (chunk("long.txt", 1, text[:-1]), chunk("answer.txt", 1, "wrong"))
    start = {"long.txt": text, "answer.txt": "wrong\n"}
    async with a_stage(tmp_path, ["?"], tasks=(task(accept=()),), start=start) as stage:
        await start_task(stage.session, T1)
        for each in chunks:
            await stage.session.record(CodeRetrieved("q", (each,)))
        bench = await stage.session.tool_context()
        found = await edit_scope(bench.scope, bench.workspace)
    assert sum(len(file.offered) for file in found.files) == MAX_OFFERED_LINES
    assert found.files[0].path == "answer.txt"


async def test_a_grammar_follows_what_was_read_and_what_became_of_it(tmp_path: Path) -> None:
    wrong_numbers = "--- a/answer.txt\n+++ b/answer.txt\n@@ -70,9 +5 @@ elsewhere\n-wrong\n+right\n"
    sayings: list[Saying] = [
        call("read_file", '{"path": "answer.txt"}'),
        Cut("Thought: hm"),
        call("write_diff", wrong_numbers),
        FINISH,
    ]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        ending = await run_unattended(stage.session, stage.recorder, None)
        grammars = [request.grammar for request in stage.model.requests]
    assert ending.reason == "T-1 done: committed"
    shown = ["wrong" in each.partition("diff ::=")[2] for each in grammars]
    assert shown == [False, True, True, False]
    assert '"right\\x0A"' in grammars[3]
    assert "wrong numbers" not in str(ending)


async def test_no_diff_is_offered_where_nothing_may_be_written(tmp_path: Path) -> None:
    nowhere = replace(task(accept=()), scope=PathScope(allowed_write_globs=()))
    async with a_stage(tmp_path, ["?"], tasks=(nowhere,)) as stage:
        await start_task(stage.session, T1)
        grammar = await choose_grammar(stage.session, Purpose.EXECUTOR)
    assert "write_diff" not in grammar
    assert "read_file" in grammar


async def test_only_what_makes_sense_now_is_offered(tmp_path: Path) -> None:
    hidden = replace(task(accept=()), scope=PathScope(allowed_read_globs=("*.txt",)))
    async with a_stage(tmp_path, ["?"], tasks=(hidden,)) as stage:
        await start_task(stage.session, T1)
        grammar = await choose_grammar(stage.session, Purpose.EXECUTOR)
        context = await stage.session.tool_context()
        with pytest.raises(UsageError, match=r"cannot be 'anser.txt'; near it are: answer.txt"):
            await builtin_tools()["read_file"].draft(context, Arguments({"path": "anser.txt"}), "{}")
    assert "run_tests" not in grammar
    assert "static_analyze" not in grammar
    assert '\\"answer.txt\\"' in grammar
    assert '\\"README.md\\"' not in grammar


async def test_where_files_are_too_many_any_path_may_be_tried(tmp_path: Path) -> None:
    start = {"answer.txt": "wrong\n", **{f"many/{number}": "" for number in range(MAX_CHOICES)}}
    async with a_stage(tmp_path, ["?"], tasks=(task(accept=()),), start=start) as stage:
        await start_task(stage.session, T1)
        bench = await stage.session.tool_context()
        assert await builtin_tools()["read_file"].choices(bench.scope, bench.workspace) == {}
        assert "char{0,200}" in await choose_grammar(stage.session, Purpose.EXECUTOR)
