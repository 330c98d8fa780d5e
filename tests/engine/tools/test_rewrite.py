"""Tool `rewrite` in a session: numbered pieces in the prompt, the diff of an answer, and another attempt."""

import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import (
    ActionProposed,
    ActionRejected,
    CodeRetrieved,
    PatchApplied,
    StepUndone,
    TaskStarted,
)
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.fold import fold_all
from agent_workbench.core.intents import CompactContext, DropChunk, SayToModel, UndoStep
from agent_workbench.core.model import Purpose
from agent_workbench.core.patch.file_piece import FilePiece
from agent_workbench.core.patch.rewritten_pieces import RewrittenPiece, read_rewrites
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.settings import Approval, Permission, RetrievalSettings, Settings
from agent_workbench.core.state.file_pieces import OfferedPieces, meant_piece, offered_pieces
from agent_workbench.engine.answer.grammar_choice import WRITES
from agent_workbench.engine.prompt.messages import build_parts
from agent_workbench.engine.prompt.prompt_text import LOOPED
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.task.first_search import MOST_NEAR
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, reflexion
from tests.fakes.ports import GivenChunks
from tests.gbnf_sampler import sample

CART = "def total(prices):\n    return max(prices)\n"
TEST = "grep -q 'sum(prices)' cart.py\n"
FILES = {"cart.py": CART, "tests/test_cart.sh": TEST}
ACCEPT = "sh tests/test_cart.sh"
TASK = (Task(T1, "Mend the total of the cart", accept_tests=(ACCEPT,)),)
CHUNKS = GivenChunks(
    (Chunk("cart.py", 1, 2, CART.rstrip("\n"), 1.0), Chunk("tests/test_cart.sh", 1, 1, TEST.rstrip("\n"), 0.5))
)


class WholeFile(GivenChunks):
    """Finds all lines of one file as they are now."""

    path: str = "cart.py"

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        text = (await sources.read_files((self.path,)))[self.path].decode().rstrip("\n")
        return (Chunk(self.path, 1, text.count("\n") + 1, text, 1.0),)


def rewrite(body: str, head: str = "Piece 1") -> str:
    return call("rewrite", f"{head}\n```python\n{body}\n```")


SUMMARY = "Summary: the cart adds up its prices in cart.py, which is all there is."
RIGHT = rewrite("def total(prices):\n    return sum(prices)")
WRONG = rewrite("def total(prices):\n    return min(prices)")


async def run(stage: Stage) -> SessionEnd:
    ending = await run_unattended(stage.session, stage.recorder, (T1,))
    assert stage.read_back() == stage.state
    assert {each.difference for each in rerun(stage.journal())} <= {None}
    return ending


async def test_a_rewritten_piece_is_applied_as_its_diff(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [RIGHT], tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 1)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert "Piece 1: cart.py, the whole file\n```\ndef total" in first
        assert "tests/test_cart.sh:1-1, read-only\n" in first
        assert first.index("Piece 1: cart.py") < first.index("Before any change:") < first.index("Make it pass.")
        (proposed,) = (
            e.proposal for e in stage.events if isinstance(e, ActionProposed) and e.proposal.tool == "rewrite"
        )
        assert "-    return max(prices)\n+    return sum(prices)\n" in proposed.diff
        assert stage.git("show", "agent/T-1:cart.py") == CART.replace("max", "sum").rstrip("\n")


async def test_an_attempt_that_fails_or_changes_nothing_or_is_told_in_part_is_made_again_from_the_same_prompt(
    tmp_path: Path,
) -> None:
    same = rewrite(CART.rstrip("\n"))
    said = [WRONG, same, rewrite("def total(prices):\n    # ... rest unchanged"), rewrite(""), WRONG, RIGHT]
    async with a_stage(
        tmp_path, said, tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 6)
        first, *more = (request.messages for request in stage.model.requests)
        assert all(each == first for each in more)
        assert [request.sampling.temperature for request in stage.model.requests] == [0.2, 0.7, *[0.8] * 4]
        assert [event.afresh for event in stage.events if isinstance(event, StepUndone)] == [True]


async def test_the_words_of_a_check_are_not_searched_for(tmp_path: Path) -> None:
    tasks = (Task(T1, f"Mend total, so that `{ACCEPT}` passes", accept_tests=(ACCEPT,)),)
    found = GivenChunks(CHUNKS.chunks)
    async with a_stage(
        tmp_path, [RIGHT], tasks=tasks, start=FILES, approvals=OPEN, headless=True, retriever=found
    ) as stage:
        await run(stage)
    assert found.queries == ["Mend total, so that ` ` passes"]


async def test_what_is_not_written_yet_is_written_at_once_and_thought_of_in_every_second_attempt(
    tmp_path: Path,
) -> None:
    stub = "def total(prices):\n    pass\n"
    said = [WRONG, rewrite("def total(prices):\n    return len(prices)"), RIGHT]
    start, found = {**FILES, "cart.py": stub}, GivenChunks((Chunk("cart.py", 1, 2, stub.rstrip("\n"), 1.0),))
    async with a_stage(
        tmp_path, said, tasks=TASK, start=start, approvals=OPEN, headless=True, retriever=found
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 3)
        assert [WRITES in each.grammar for each in stage.model.requests] == [True, False, True]
        grammar = stage.model.requests[0].grammar
        assert sample(grammar, random.Random(1)).startswith(f"Thought: {WRITES}\n")


@pytest.mark.parametrize("name", ["1", "cart.py", "cart.py1", "cart.py._contents"])
async def test_a_piece_that_is_called_a_new_file_is_rewritten(tmp_path: Path, name: str) -> None:
    said = [rewrite("def total(prices):\n    return sum(prices)", f"New file {name}")]
    async with a_stage(
        tmp_path, said, tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE
        (proposed,) = (
            e.proposal for e in stage.events if isinstance(e, ActionProposed) and e.proposal.tool == "rewrite"
        )
        assert proposed.paths == ("cart.py",)
        assert proposed.repaired[0].startswith("piece 1 was rewritten: the new file ")


@pytest.mark.parametrize(
    ("name", "text"), [("cart.pyi", "def total(prices): ..."), ("cart.py.md", "# Carts"), ("2", "def total(prices):")]
)
def test_a_file_that_is_new_is_no_piece(name: str, text: str) -> None:
    piece = FilePiece(1, "cart.py", 1, (tuple(CART.rstrip("\n").split("\n")),), whole=True)
    assert meant_piece(OfferedPieces((piece,)), RewrittenPiece((text,), path=name)) is None


async def test_the_grammar_holds_a_piece_that_is_a_whole_file_to_a_text(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [RIGHT], tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        await run(stage)
        rules = stage.model.requests[0].grammar.split("\n")
        grammar = "\n".join(("root ::= pieces", *(rule for rule in rules if not rule.startswith("root "))))
        chance = random.Random(5)
        written = [each.lines for _ in range(60) for each in read_rewrites(sample(grammar, chance))]
        assert len(written) == 60
        assert all(written)


async def test_a_part_that_is_meant_to_go_is_told_after_three_times(tmp_path: Path) -> None:
    """Who may mean to remove the rest has to read why that is refused."""
    part = rewrite("def total(prices):\n    # ... rest unchanged")
    async with a_stage(
        tmp_path, [part] * 4 + [RIGHT], tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE
        first, *more, last = (request.messages for request in stage.model.requests)
        assert all(each == first for each in more)
        assert "leaves text out" in last[-1].text


async def test_a_loop_is_told_and_not_read_again(tmp_path: Path) -> None:
    loop = call("rewrite", "Piece 1\n```python\ndef total(prices):\n" + "    prices = prices or []\n" * 200)
    async with a_stage(
        tmp_path, [loop, loop, RIGHT], tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE
        first, *more = (request.messages for request in stage.model.requests)
        told = replace(first[-1], text=f"{first[-1].text}\n\n{LOOPED}")
        assert more == [(*first[:-1], told)] * 2


async def test_a_right_change_is_committed_where_the_model_has_nothing_more_to_say(tmp_path: Path) -> None:
    task = replace(TASK[0], goal="Also update the readme.")
    async with a_stage(
        tmp_path, [RIGHT, RIGHT], tasks=(task,), start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 2)


async def test_a_rewriting_in_part_after_all_passes_is_told_and_does_not_end_the_task(tmp_path: Path) -> None:
    task = replace(TASK[0], goal="Also add a readme.")
    part = rewrite("def total(prices):\n    # ... rest unchanged")
    said = [RIGHT, part, rewrite("The total of all prices.", "New file README.md"), FINISH]
    async with a_stage(
        tmp_path, said, tasks=(task,), start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 4)
        assert "leaves text out" in stage.model.requests[2].messages[-1].text
        assert stage.git("show", "agent/T-1:README.md") == "The total of all prices."


async def test_a_rewritten_piece_keeps_its_number(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [WRONG, reflexion(), RIGHT], tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE
        applied = [event for event in stage.events if isinstance(event, PatchApplied)]
        assert [chunk.text for event in applied for chunk in event.shown] == [
            "def total(prices):\n    return min(prices)",
            "def total(prices):\n    return sum(prices)",
        ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (rewrite("x = 1", "Piece 2"), "there is no piece 2"),
        (rewrite("true", "New file tests/test_cart.sh"), "exists"),
        (rewrite(CART.rstrip("\n")), "the same as the old one"),
        (rewrite("def total(prices):\n    # ... rest unchanged"), "leaves text out"),
        (rewrite("import sys", "New file conftest.py"), ""),
    ],
)
async def test_what_is_not_offered_is_refused_with_its_reason(tmp_path: Path, answer: str, reason: str) -> None:
    async with a_stage(
        tmp_path, [answer, RIGHT], tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        await run(stage)
        refused = [event.reason for event in stage.events if isinstance(event, ActionRejected)]
        assert not reason or (refused and reason in refused[0])
        assert stage.git("show", "agent/T-1:tests/test_cart.sh") == TEST.rstrip("\n")


async def test_after_a_summary_the_prompt_has_the_code_and_nothing_of_an_attempt_that_was_given_up(
    tmp_path: Path,
) -> None:
    looked = call("list_files", '{"glob":"cart.*"}')
    said = [looked, rewrite(CART.rstrip("\n")), WRONG, SUMMARY, RIGHT]
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    async with (
        a_stage(tmp_path, said, tasks=TASK, start=FILES, approvals=approvals, retriever=CHUNKS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        await front.submit(CompactContext())
        await front.approve(Permission.DIFF)
        proposal = await front.gate(Permission.DIFF)
        assert [event.afresh for event in stage.events if isinstance(event, StepUndone)] == [True]
        told = "\n".join(message.text for message in stage.model.requests[-1].messages)
        assert SUMMARY.removeprefix("Summary: ") in told
        assert "min(prices)" not in told
        assert told.count("Action: rewrite") == 1  # in the rules
        assert "Piece 1: cart.py" in told
        assert "Before any change:" in told
        assert "-    return max(prices)\n+    return sum(prices)\n" in proposal.diff


async def test_a_compaction_leaves_a_piece_that_the_newest_step_rewrote(tmp_path: Path) -> None:
    said = [WRONG, SUMMARY, reflexion(), RIGHT]
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    start = FILES | {"tests/test_cart.sh": "! grep -q 'min(prices)' cart.py\n"}
    async with (
        a_stage(tmp_path, said, tasks=TASK, start=start, approvals=approvals, retriever=CHUNKS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        await front.submit(CompactContext())
        await front.approve(Permission.DIFF)
        await front.gate(Permission.DIFF)
        told = "\n".join(message.text for message in stage.model.requests[-1].messages)
        assert SUMMARY.removeprefix("Summary: ") in told
        assert WRONG in told
        assert "Piece 1: cart.py" not in told
        run_ = stage.state.run
        assert run_ is not None
        assert [piece.place for piece in offered_pieces(run_).pieces] == ["cart.py:1-2"]
        proposal = run_.gate.proposal
        assert proposal is not None
        assert "-    return min(prices)\n+    return sum(prices)\n" in proposal.diff


LONG = "import os\n\nRATE = 2\n\n\ndef total(prices):\n    return max(prices)\n\n\ndef other(prices):\n    return 1\n"
IMPORTED = (Chunk("cart.py", 6, 7, CART.rstrip("\n"), 1.0, context="import os\n…"),)
BOTH = call(
    "rewrite",
    "Piece 1\n```\ndef total(prices):\n    return sum(prices)\n```\n"
    "Piece 2\n```\nimport os\nfrom math import fsum\n```",
)


async def test_the_imports_of_a_file_are_offered_with_each_of_its_pieces(tmp_path: Path) -> None:
    said = [call("read_file", '{"path":"cart.py","first_line":9,"last_line":11}')]
    said += [rewrite("def total(prices):\n    return min(prices)"), SUMMARY, BOTH]
    files = {**FILES, "cart.py": LONG}
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    async with (
        a_stage(tmp_path, said, tasks=TASK, start=files, approvals=approvals, retriever=GivenChunks(IMPORTED)) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        await front.submit(CompactContext())
        await front.reject(Permission.DIFF, "not yet")
        proposal = await front.gate(Permission.DIFF)
        first, second, *_, last = (
            "\n".join(each.text for each in request.messages) for request in stage.model.requests
        )
        more = "where a piece of the file needs another one, these follow it in the same answer"
        head = f"Piece 2: cart.py:1-1, its imports; {more}\n```\nimport os\n```\n"
        assert f"Piece 1: cart.py:6-7\n```\n{CART}```\n\n{head}" in first
        assert "To rewrite: piece 3 is cart.py:9-11." in second
        assert second.count("import os") == 1
        assert SUMMARY.removeprefix("Summary: ") in last
        assert head in last
        assert last.count("import os\n") == 1
        assert "+from math import fsum\n" in proposal.diff
        assert "+    return sum(prices)\n" in proposal.diff
        assert {each.difference for each in rerun(stage.journal())} <= {None}


async def test_imports_may_follow_a_piece_in_every_second_attempt(tmp_path: Path) -> None:
    """Of 25 answers of the 1.5B that wrote them 15 left them as they were, and ten broke the file."""
    files = {**FILES, "cart.py": LONG}
    said, chunks = [WRONG, WRONG.replace("min", "len"), RIGHT], GivenChunks(IMPORTED)
    async with a_stage(
        tmp_path, said, tasks=TASK, start=files, approvals=OPEN, headless=True, retriever=chunks
    ) as stage:
        await run(stage)
        grammars = [request.grammar for request in stage.model.requests]
        assert [r' ("\n" (' in grammar for grammar in grammars] == [False, True, False]
        assert all(r'"Piece 2\n"' in grammar for grammar in grammars)


async def test_a_copy_of_the_piece_in_place_of_the_imports_is_dropped(tmp_path: Path) -> None:
    copied = call(
        "rewrite", f"Piece 1\n```\n{CART.replace('max', 'sum')}```\nPiece 2\n```\n{CART.replace('max', 'sum')}```"
    )
    files = {**FILES, "cart.py": LONG}
    async with a_stage(
        tmp_path, [copied], tasks=TASK, start=files, approvals=OPEN, headless=True, retriever=GivenChunks(IMPORTED)
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 1)
        (proposed,) = (
            e.proposal for e in stage.events if isinstance(e, ActionProposed) and e.proposal.tool == "rewrite"
        )
        assert proposed.repaired == ("piece 2 stayed: its new text was that of piece 1",)
        assert stage.git("show", "agent/T-1:cart.py") == LONG.replace("max", "sum").rstrip("\n")


async def test_code_that_the_words_name_comes_first_and_little_else_is_shown(tmp_path: Path) -> None:
    others = tuple(Chunk(f"{name}.py", 1, 2, "a = 1\nb = 2", 2.0) for name in ("one", "two", "three"))
    found = (*others, Chunk("cart.py", 9, 10, "def other(prices):\n    return 1", 1.0, "other"))
    named = Chunk("cart.py", 6, 7, CART.rstrip("\n"), 0.5, "total")
    files = {**FILES, "cart.py": LONG, **{chunk.path: "a = 1\nb = 2\n" for chunk in others}}
    task = (replace(TASK[0], description="Mend total() in cart.py"),)
    chunks = GivenChunks((*found, named))
    async with a_stage(
        tmp_path, [RIGHT], tasks=task, start=files, approvals=OPEN, headless=True, retriever=chunks
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 1)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert "Piece 1: cart.py:6-7\n" in first
        assert [f"{chunk.path}, the whole file" in first for chunk in others] == [True, True, False]


OTHERS = ("one.py", "two.py", "three.py")


@pytest.mark.parametrize(
    ("description", "told", "offered"),
    [
        ("A sum in one or CHANGELOG is wrong", "E   AssertionError", ("one.py", *OTHERS[1:], "shop/cart.py")),
        ("A sum is wrong", "E   AssertionError", (*OTHERS, "shop/cart.py")),
        (
            "A sum is wrong",
            "E   AttributeError: module 'shop.cart' has no attribute 'sums'",
            ("shop/cart.py", *OTHERS[:2]),
        ),
        ("Add the cart.sums function", "E   AssertionError", ("shop/cart.py", *OTHERS[:2])),
        ("A sum is wrong", "test_cart.py failed", ("shop/cart.py", *OTHERS[:2])),
        ("A sum is wrong", "cart.spec.js failed", ("shop/cart.py", *OTHERS[:2])),
        ("Tell of it in CHANGELOG.md", "E   AssertionError", ("CHANGELOG.md", *OTHERS, "shop/cart.py")),
    ],
)
async def test_beside_code_no_document_and_no_other_test_is_shown_where_a_check_fails(
    tmp_path: Path, description: str, told: str, offered: tuple[str, ...]
) -> None:
    """The 1.5B rewrote a changelog of which an old entry had the words of the task."""
    news = Chunk("CHANGELOG.md", 1, 2, "# Add\n\nA sum", 3.0, "Add")
    types = Chunk("types/cart.pyi", 1, 1, "def sums(prices): ...", 2.6, "sums")
    passing = Chunk("tests/test_other.py", 1, 2, "def test_a():\n    pass", 2.5, "test_a")
    code = tuple(Chunk(path, 1, 1, "a = 1", 2.0, path) for path in OTHERS)
    meant = Chunk("shop/cart.py", 1, 2, CART.rstrip("\n"), 1.0, "total")
    found = (news, types, passing, *code, meant)
    test = f'{TEST.strip().replace("cart.py", "shop/cart.py")} || {{ echo "{told}"; exit 1; }}\n'
    files = {chunk.path: f"{chunk.text}\n" for chunk in found} | {"tests/test_cart.sh": test}
    task = (replace(TASK[0], description=description),)
    answer = RIGHT.replace("Piece 1", f"Piece {offered.index('shop/cart.py') + 1}")
    async with a_stage(
        tmp_path, [answer, FINISH], tasks=task, start=files, approvals=OPEN, headless=True, retriever=GivenChunks(found)
    ) as stage:
        await run(stage)
        run_ = stage.state.run
        assert run_ is not None
        assert tuple(piece.path for piece in offered_pieces(run_).pieces) == offered


async def test_documents_take_no_place_of_code_where_a_check_fails(tmp_path: Path) -> None:
    """Of the eight best pieces for a commit of cachetools one was a changelog and seven were tests."""
    news = tuple(Chunk(f"docs/{n}.md", 1, 1, "A sum", 2.0) for n in range(RetrievalSettings().top_n))
    chunks = GivenChunks((*news, CHUNKS.chunks[0]))
    files = FILES | {chunk.path: "A sum\n" for chunk in news}
    async with a_stage(
        tmp_path, [RIGHT], tasks=TASK, start=files, approvals=OPEN, headless=True, retriever=chunks
    ) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE


async def test_the_docstring_of_a_class_is_not_shown_beside_its_member(tmp_path: Path) -> None:
    text = 'class Cart:\n    """Prices.\n\n    In cents.\n    """\n\n    def total(self):\n        return 1\n'
    lines = text.split("\n")
    heading, part = (Chunk("cart.py", 1, last, "\n".join(lines[:last]), 2.0, "Cart") for last in (5, 3))
    member = Chunk("cart.py", 7, 8, "\n".join(lines[6:8]), 1.0, "Cart.total")
    for found, shown in (((heading, member), False), ((part, member), False), ((heading,), True)):
        async with a_stage(
            tmp_path / str(len(found[0].text)) / str(shown),
            [RIGHT],
            tasks=TASK,
            start={**FILES, "cart.py": text},
            approvals=OPEN,
            headless=True,
            retriever=GivenChunks(found),
        ) as stage:
            await run(stage)
            first = "\n".join(message.text for message in stage.model.requests[0].messages)
            assert ('"""Prices.' in first) is shown


async def test_the_file_that_the_title_names_comes_before_a_definition_that_a_later_word_is(tmp_path: Path) -> None:
    other = Chunk("one.py", 1, 2, "def len(a):\n    return 1", 2.0, "len")
    meant = Chunk("cart.py", 1, 2, CART.rstrip("\n"), 1.0, "total")
    task = (replace(TASK[0], description="cart: add sums", goal="At most len(prices) of them"),)
    files = {**FILES, "one.py": "def len(a):\n    return 1\n"}
    async with a_stage(
        tmp_path,
        [RIGHT, FINISH],
        tasks=task,
        start=files,
        approvals=OPEN,
        headless=True,
        retriever=GivenChunks((other, meant)),
    ) as stage:
        await run(stage)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert "Piece 1: cart.py, the whole file\n" in first


async def test_of_two_members_of_one_name_that_of_the_named_class_comes_first(tmp_path: Path) -> None:
    text = (
        "class Basket:\n    def total(self):\n        return 1\nclass Cart:\n    def price(self):\n        return 2\n"
    )
    lines = text.split("\n")
    other = Chunk("cart.py", 2, 3, "\n".join(lines[1:3]), 2.0, "Basket.total")
    meant = Chunk("cart.py", 5, 6, "\n".join(lines[4:6]), 1.0, "Cart.price")
    task = (replace(TASK[0], description="Give Cart.total a body"),)
    files, found = {**FILES, "cart.py": text}, GivenChunks((other, meant))
    async with a_stage(
        tmp_path, [RIGHT], tasks=task, start=files, approvals=OPEN, headless=True, retriever=found
    ) as stage:
        await run(stage)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert first.index("def price") < first.index("Piece 2: cart.py:2-3")


async def test_a_test_in_a_file_of_the_program_comes_after_its_code(tmp_path: Path) -> None:
    test = "def total_test():\n    assert total([1, 2]) == 3"
    found = (Chunk("cart.py", 1, 2, test, 2.0, "total_test"), Chunk("cart.py", 5, 6, CART.rstrip("\n"), 1.0, "total"))
    files = {**FILES, "cart.py": f"{test}\n\n\n{CART}"}
    task = (replace(TASK[0], description="A sum is wrong"),)
    async with a_stage(
        tmp_path, [RIGHT], tasks=task, start=files, approvals=OPEN, headless=True, retriever=GivenChunks(found)
    ) as stage:
        await run(stage)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert first.index("Piece 1: cart.py:5-6\n") < first.index("Piece 2: cart.py:1-2\n")


async def test_code_that_raises_comes_before_code_that_calls_it(tmp_path: Path) -> None:
    """The first prompt for fast-uri showed `equal`, and then `parse`, in which it failed."""
    text = "def first(a):\n    return total(a)\n\n\ndef total(prices):\n    return max(prices)\n"
    calls = Chunk("cart.py", 1, 2, "def first(a):\n    return total(a)", 2.0, "first")
    raises = Chunk("cart.py", 5, 6, "def total(prices):\n    return max(prices)", 1.0, "total")
    failing = 'echo \'cart.py:2: in first\'; echo "E   ValueError: empty"; echo "$PWD/cart.py:6: ValueError"'
    files = {**FILES, "cart.py": text, "tests/test_cart.sh": f"{TEST.strip()} || {{ {failing}; exit 1; }}\n"}
    task = (replace(TASK[0], description="A sum is wrong"),)
    async with a_stage(
        tmp_path,
        [RIGHT],
        tasks=task,
        start=files,
        approvals=OPEN,
        headless=True,
        retriever=GivenChunks((calls, raises)),
    ) as stage:
        await run(stage)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert first.index("Piece 1: cart.py:5-6\n") < first.index("Piece 2: cart.py:1-2\n")


async def test_a_file_that_the_words_name_is_shown_before_others_fill_the_prompt(tmp_path: Path) -> None:
    found = (Chunk("one.py", 1, 1, "a = 1", 2.0, "a", tokens=1_100), replace(CHUNKS.chunks[0], tokens=200))
    task = (replace(TASK[0], description="Mend cart.py"),)
    files = {**FILES, "one.py": "a = 1\n"}
    async with a_stage(
        tmp_path, [RIGHT], tasks=task, start=files, approvals=OPEN, headless=True, retriever=GivenChunks(found)
    ) as stage:
        await run(stage)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert "Piece 1: cart.py, the whole file\n" in first
        assert "one.py:1-1" not in first


@pytest.mark.parametrize("fails", [True, False])
async def test_where_a_check_fails_the_map_lists_the_nearest_files_alone(tmp_path: Path, *, fails: bool) -> None:
    files = {**FILES, **{f"part_{number}.py": "a = 1\n" for number in range(30)}}
    start = files if fails else {**files, "cart.py": "def total(prices):\n    return sum(prices)\n"}
    async with a_stage(
        tmp_path, [RIGHT, FINISH, FINISH], tasks=TASK, start=start, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        await run(stage)
        [found] = [event for event in stage.events if isinstance(event, CodeRetrieved)]
        assert found.map is not None
        assert len(found.map.near) == (MOST_NEAR if fails else len(start))


@pytest.mark.parametrize(
    ("body", "below", "is_short"),
    [
        ("    return max(prices)\n", "def other():\n    return 1\n", True),
        ("    return max(prices)\n", "", False),
        ("    raise NotImplementedError\n", "def other():\n    return 1\n", False),
    ],
    ids=["a piece", "a whole file", "not written yet"],
)
async def test_the_long_docstring_of_a_piece_is_shown_by_its_first_line_and_stays(
    body: str, below: str, tmp_path: Path, *, is_short: bool
) -> None:
    """In libraries it is most of a function: the 1.5B copied it, or changed its examples in place of the code."""
    piece = f'def total(prices):\n    """Sum of the prices.\n\n    >>> total([1, 2])\n    3\n    """\n{body}'
    written = piece.replace(body, "    return sum(prices)\n")
    said = written.replace('.\n\n    >>> total([1, 2])\n    3\n    """', '. …"""') if is_short else written
    files = {**FILES, "cart.py": f"{piece}\n\n{below}"}
    found = GivenChunks((Chunk("cart.py", 1, 7, piece.rstrip("\n"), 1.0, "total"),))
    async with a_stage(
        tmp_path, [rewrite(said)], tasks=TASK, start=files, approvals=OPEN, headless=True, retriever=found
    ) as stage:
        await run(stage)
        first = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert ('"""Sum of the prices. …"""' in first, ">>> total" in first) == (is_short, not is_short)
        proposed = [event.proposal for event in stage.events if isinstance(event, ActionProposed)]
        [diff] = [each for each in proposed if each.tool == "rewrite"]
        changed = [line for line in diff.diff.split("\n") if line.startswith(("-", "+"))][2:]
        assert (changed, diff.repaired) == ([f"-{body}".rstrip(), "+    return sum(prices)"], ())


async def test_an_older_version_offers_no_pieces(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [RIGHT], tasks=TASK, start=FILES, approvals=OPEN, headless=True, retriever=CHUNKS
    ) as stage:
        await run(stage)
        assert stage.state.run is not None
        assert offered_pieces(stage.state.run).pieces
        older = [
            replace(each, event=replace(each.event, wording=3)) if isinstance(each.event, TaskStarted) else each
            for each in stage.journal()
        ]
        state = fold_all(older)
        assert state.run is not None
        assert not offered_pieces(state.run).pieces
        shown = [part.text for part in build_parts(state, Purpose.EXECUTOR) if part.label.startswith("code")]
        assert not any("Piece 1" in text for text in shown)


async def test_the_text_of_one_function_under_the_number_of_another_is_taken_for_its_own(tmp_path: Path) -> None:
    """A 1.5B gave `format` of bytes.js the number of the file's head, whose 46 lines the diff then removed."""
    said = [rewrite("def total(prices):\n    return sum(prices)", "Piece 2")]
    chunks = GivenChunks((*IMPORTED, Chunk("cart.py", 10, 11, "def other(prices):\n    return 1", 0.9)))
    files, approvals = {**FILES, "cart.py": LONG}, replace(OPEN, diff=Approval.ASK, commit=Approval.ASK)
    async with (
        a_stage(tmp_path, said, tasks=TASK, start=files, approvals=approvals, retriever=chunks) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        proposal = await front.gate(Permission.DIFF)
        assert "piece 1 was rewritten, not piece 2: the new text is of that one" in proposal.repaired
        assert (proposal.diff.count("\n-"), proposal.diff.count("\n+")) == (2, 2)
        await front.approve(Permission.DIFF)
        await front.gate(Permission.COMMIT)
        assert stage.state.run is not None
        texts = {each.number: each.lines[-1] for each in offered_pieces(stage.state.run).pieces}
        assert (texts[1], texts[2]) == ("    return sum(prices)", "    return 1")
        assert {each.difference for each in rerun(stage.journal())} <= {None}


def mended(*names: str) -> str:
    return "\n".join(f"{name} = {int(name in names)}" for name in "abcdef")


TESTED = 'grep -q "$name = 1" flags.txt && echo "ok 1 - $name" || { echo "not ok 1 - $name"; red=1; }'
FLAGS = {
    "flags.txt": f"{mended()}\n",
    "other.txt": "of no matter\n",
    "tests/test_flags.sh": f"for name in a b c d e f; do {TESTED}; done\nexit $red\n",
}
FLAGS_TASK = (Task(T1, "Set the flags", accept_tests=("sh tests/test_flags.sh",)),)


async def test_an_attempt_after_which_nearly_all_pass_is_kept_and_the_next_begins_there(tmp_path: Path) -> None:
    said = [rewrite(mended(*each)) for each in ("ab", "abcd", "abc", "abcde", "abcdef")]
    async with a_stage(
        tmp_path,
        said,
        tasks=FLAGS_TASK,
        start=FLAGS,
        approvals=OPEN,
        headless=True,
        retriever=WholeFile(path="flags.txt"),
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 5)
        asked = ["\n".join(message.text for message in request.messages) for request in stage.model.requests]
        shown = [("", "abcdef"), ("", "abcdef"), ("abcd", "ef"), ("abcd", "ef"), ("abcde", "f")]
        for prompt, (right, wrong) in zip(asked, shown, strict=True):
            assert f"Piece 1: flags.txt, the whole file\n```\n{mended(*right)}\n```" in prompt
            assert [name for name in "abcdef" if f"not ok 1 - {name}" in prompt] == [*wrong]
            assert prompt.count("Piece 1") == prompt.count("Make it pass.") == 1
        assert (asked[0], asked[2]) == (asked[1], asked[3])
        assert len(stage.model.requests[-1].messages) == 2
        assert [request.sampling.temperature for request in stage.model.requests] == [0.2, 0.7, 0.2, 0.7, 0.2]


async def test_a_kept_attempt_that_is_built_on_in_vain_is_given_up(tmp_path: Path) -> None:
    same = rewrite(mended(*"abcd"))
    said = [*(rewrite(mended(*each)) for each in ("abcd", "abc", "abd")), same, same, rewrite(mended(*"abcdef"))]
    async with a_stage(
        tmp_path,
        said,
        tasks=FLAGS_TASK,
        start=FLAGS,
        approvals=OPEN,
        headless=True,
        retriever=WholeFile(path="flags.txt"),
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 6)
        asked = ["\n".join(message.text for message in request.messages) for request in stage.model.requests]
        shown = [("", "abcdef"), *[("abcd", "ef")] * 4, ("", "abcdef")]
        for prompt, (right, wrong) in zip(asked, shown, strict=True):
            assert f"Piece 1: flags.txt, the whole file\n```\n{mended(*right)}\n```" in prompt
            assert [name for name in "abcdef" if f"not ok 1 - {name}" in prompt] == [*wrong]
            assert prompt.count("Piece 1") == prompt.count("Make it pass.") == 1
        assert [event.afresh for event in stage.events if isinstance(event, StepUndone)] == [True] * 3
        assert [request.sampling.temperature for request in stage.model.requests] == [0.2, 0.2, 0.7, 0.8, 0.8, 0.8]


async def test_what_the_user_said_and_dropped_holds_where_an_attempt_is_kept(tmp_path: Path) -> None:
    class AnotherToo(WholeFile):
        async def search(
            self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
        ) -> tuple[Chunk, ...]:
            found = await super().search(sources, query, limit, complete=complete)
            return (*found, Chunk("other.txt", 1, 1, "of no matter", 0.5))

    read = call("read_file", '{"path": "flags.txt"}')
    said = [read, rewrite(mended(*"abcd")), rewrite(mended(*"abcdef"))]
    approvals = replace(OPEN, read=Approval.ASK, diff=Approval.ASK, commit=Approval.ASK)
    async with (
        a_stage(
            tmp_path,
            said,
            tasks=FLAGS_TASK,
            start=FLAGS,
            approvals=approvals,
            retriever=AnotherToo(path="flags.txt"),
        ) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.READ)
        await front.outcome(SayToModel("leave the comments"))
        await front.approve(Permission.READ)
        await front.gate(Permission.DIFF)
        await front.outcome(DropChunk("other.txt:1-1"))
        await front.approve(Permission.DIFF)
        await front.gate(Permission.DIFF)
        prompts = ["\n".join(message.text for message in request.messages) for request in stage.model.requests]
        assert len(prompts) == 3
        assert f"Piece 1: flags.txt, the whole file\n```\n{mended(*'abcd')}\n```" in prompts[-1]
        assert "leave the comments" in prompts[-1]
        assert ["of no matter" in prompt for prompt in prompts] == [True, True, False]
        assert {each.difference for each in rerun(stage.journal())} <= {None}


async def test_a_kept_attempt_that_the_user_takes_back_can_be_rewritten_as_it_was_before(tmp_path: Path) -> None:
    said = [rewrite(mended(*each)) for each in ("abcd", "abcde", "abcdef")]
    approvals = replace(OPEN, diff=Approval.ASK, commit=Approval.ASK)
    async with (
        a_stage(
            tmp_path,
            said,
            tasks=FLAGS_TASK,
            start=FLAGS,
            approvals=approvals,
            retriever=WholeFile(path="flags.txt"),
        ) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.DIFF)
        newest = await front.gate(Permission.DIFF)
        await front.outcome(UndoStep())
        await front.passed(newest)
        diff = (await front.gate(Permission.DIFF)).diff
        assert (diff.count("\n-a = 0"), diff.count("\n+a = 1"), diff.count("\n+f = 1")) == (1, 1, 1)
        assert not any(isinstance(event, ActionRejected) for event in stage.events)


async def test_a_whole_file_that_is_pinned_is_shown_whole_where_an_attempt_that_adds_to_it_is_kept(
    tmp_path: Path,
) -> None:
    task = replace(FLAGS_TASK[0], description="Set the flags of @flags.txt")
    longer = f"{mended(*'abcd')}\n# the last line"
    async with a_stage(
        tmp_path,
        [rewrite(longer), rewrite(mended(*"abcdef"))],
        tasks=(task,),
        start=FLAGS,
        approvals=OPEN,
        headless=True,
        retriever=WholeFile(path="flags.txt"),
    ) as stage:
        assert (await run(stage)).exit_code == ExitCode.DONE
        last = stage.model.requests[-1].messages[-1].text
        assert f"Piece 1: flags.txt, the whole file\n```\n{longer}\n```" in last
        assert "Piece 2" not in last


async def test_an_attempt_that_breaks_another_test_is_given_up(tmp_path: Path) -> None:
    long = rewrite("def total(prices):\n    everything = sum(prices)\n    return everything")
    suite = Settings(lint_command="! grep -q everything cart.py || { echo 'not ok 1 - names'; exit 1; }")
    async with a_stage(
        tmp_path,
        [long, RIGHT],
        tasks=TASK,
        start=FILES,
        settings=suite,
        approvals=OPEN,
        headless=True,
        retriever=WholeFile(),
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 2)
        assert stage.model.requests[0].messages == stage.model.requests[1].messages


async def test_an_attempt_that_only_other_checks_speak_against_is_kept(tmp_path: Path) -> None:
    long = rewrite("def total(prices):\n    everything = sum(prices)\n    return everything")
    settings = Settings(lint_command="! grep -q everything cart.py")
    async with a_stage(
        tmp_path,
        [long, long, WRONG, RIGHT],
        tasks=TASK,
        start=FILES,
        settings=settings,
        approvals=OPEN,
        headless=True,
        retriever=WholeFile(),
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 4)
        asked = ["\n".join(message.text for message in request.messages) for request in stage.model.requests]
        assert ["everything = sum(prices)" in prompt for prompt in asked] == [False, True, True, True]
        assert [event.afresh for event in stage.events if isinstance(event, StepUndone)] == [True]
        (kept,) = (event for event in stage.events if isinstance(event, CodeRetrieved) and event.failing)
        assert log_line(kept) == "the model begins with the code as it is now; 1 piece of code found"
