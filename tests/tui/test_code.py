"""The pane of retrieved code: what is opened, found, added and told of the index, all by keys."""

import pytest

from agent_workbench.core.events import ChunkPinned, Event, KnowledgeFound, SkillsChosen, SkillText
from agent_workbench.core.intents import ChooseSkill, DropChunk, FindCode, PinChunk
from agent_workbench.core.live import Live
from agent_workbench.core.outcomes import CodeFound, Refused
from agent_workbench.core.repo.retrieval import Chunk, IndexStatus
from agent_workbench.core.skills import SkillEntry, SkillOrigin
from agent_workbench.tui.widgets.colours import mark_words, plain_lines
from agent_workbench.views.blocks import Tone
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, driving

CART, TEST = runs.retrieved()[0].chunks
TAX = Chunk("shop/tax.py", 1, 2, "def tax() -> int:\n    return 19", 0.5, "tax", ("tax",), 9)


async def test_a_piece_is_opened_marked_pinned_and_dropped_from_there() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("5", "j", "o")
        assert bench.screen.name == "piece"
        await bench.until(lambda: "def total" in bench.text())
        for words in ("shop/cart.py:15-17  total", "symbol", "27%", "pin: p │ drop: x"):
            assert words in bench.text()
        await bench.press("p", "x")
        assert bench.session.intents == [PinChunk(CART.place), DropChunk(CART.place)]
        await bench.record(ChunkPinned(CART))
        assert "unpin: p" in bench.text()
        await bench.press("o")
        assert bench.screen.name == "workbench"


async def test_a_note_that_is_pinned_stays_one_row() -> None:
    note = Chunk("memory/knowledge/cart.md", 5, 5, "Count quantities.", 0.9, "Cart", ("count",))
    session = ScriptedSession(*runs.up_to_first_diff(), KnowledgeFound("cart", (note,)))
    async with driving(session, LARGE) as bench:
        assert bench.text().count("cart.md:5-5  Cart") == 1
        await bench.record(ChunkPinned(note))
        assert bench.text().count("cart.md:5-5  Cart") == 1


async def test_hits_are_gone_through_and_a_recording_only_looks() -> None:
    text = "\n".join("total" if n in (39, 79) else "x" for n in range(140))
    long = Chunk("long.py", 1, 140, text, 0.9, "", ("total",))
    session = ScriptedSession(*runs.up_to_first_diff(), ChunkPinned(long)).as_replay()
    async with driving(session, SMALL) as bench:
        await bench.press("5", "g", "o")
        assert "for total" in bench.text()
        lines = bench.screen.query_one("#piece-lines")
        await bench.press("n")
        first = lines.scroll_offset.y
        await bench.press("n")
        assert lines.scroll_offset.y == first + 40
        await bench.press("N")
        assert lines.scroll_offset.y == first
        await bench.press("p", "x")
        assert bench.session.intents == []
        assert "this is a recording" in bench.text()


async def test_code_is_found_by_words_and_added_by_a_key() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("5", "plus", *"tax", "enter")
        assert bench.session.intents == [FindCode("tax")]
        await bench.live(Live(index=IndexStatus(312, 2066)))
        assert "searching · indexing 312 of 2,066 files" in bench.text()
        await bench.live(Live())
        await bench.answer(CodeFound("tax", (CART, TAX)))
        assert "2 found" in bench.text()
        assert "in the prompt already" in bench.text()
        await bench.press("j", "enter")
        assert bench.session.intents.pop() == PinChunk(TAX.place)
        await bench.record(ChunkPinned(TAX))
        assert "1 pinned: the model reads it with its next step" in bench.text()
        await bench.press("enter", "slash", *"rate", "enter")
        assert bench.session.intents[1:] == [PinChunk(TAX.place, pinned=False), FindCode("rate")]
        assert "searching" in bench.text(), "what was found before is no answer to what was asked now"
        await bench.answer(CodeFound("rate", ()))
        assert "nothing found" in bench.text()
        assert "nothing found yet" not in bench.text()
        await bench.press("escape")
        assert bench.screen.name == "workbench"
        assert "shop/tax.py:1-2" in bench.text()


async def test_a_skill_that_did_not_fit_is_found_by_its_name_and_taken() -> None:
    tidy = SkillEntry("tidy-up", "Tidy [bold]up[/] \x1b]52;c;aGk=\x07", SkillOrigin.REPO, "skills/tidy-up", tokens=120)
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("5", "plus", *"tidy", "enter")
        await bench.answer(CodeFound("tidy", (TAX,), (tidy,)))
        assert "skill tidy-up" in bench.text()
        assert "\x1b]52" not in bench.text()
        await bench.press("enter")
        assert bench.session.intents[-1] == ChooseSkill("tidy-up")
        await bench.record(SkillsChosen(runs.T1, (SkillText("tidy-up", "Tidy up.", "chosen by the user", 120),)))
        assert "1 pinned" in bench.text()
        await bench.press("enter")
        assert bench.session.intents[-1] == ChooseSkill("tidy-up", chosen=False)


async def test_why_nothing_could_be_searched_is_said() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("5", "plus", *"a.py:9", "enter")
        await bench.answer(Refused("a.py has 2 lines, line 9 was asked for"))
        assert "a.py has 2 lines, line 9 was asked for" in bench.text()
        await bench.press("enter")
        assert "searching" in bench.text()


@pytest.mark.parametrize("session", [ScriptedSession(*runs.up_to_first_diff()).as_replay, None])
async def test_nothing_is_added_where_no_task_goes_on(session: object) -> None:
    shown = session() if callable(session) else ScriptedSession(*runs.up_to_done())
    async with driving(shown) as bench:
        await bench.press("5", "plus")
        assert bench.screen.name == "workbench"
        assert bench.session.intents == []


async def test_nothing_found_in_an_index_that_is_not_ready_says_so() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("5", "plus", *"tax", "enter")
        await bench.live(Live(index=IndexStatus()))
        await bench.answer(CodeFound("tax", ()))
        assert "nothing found yet: the index has only begun; ask again" in bench.text()
        await bench.live(Live(index=IndexStatus(312, 2066, 300, 4120)))
        assert "nothing found yet: indexing 312 of 2,066 files; ask again" in bench.text()
        await bench.press("enter")
        await bench.live(Live(index=IndexStatus(2066, 2066, 2066, 14_002)))
        await bench.answer(CodeFound("tax", (TAX,)))
        assert "1 found" in bench.text()
        assert "indexed" not in bench.text()


@pytest.mark.parametrize(
    ("events", "offered", "useless"),
    [
        (runs.opening(), (), ("open: o", "add: +")),
        (runs.up_to_first_diff()[:-1], ("open: o", "add: +"), ()),
        (runs.up_to_done(), ("open: o",), ("add: +",)),
    ],
    ids=["no piece", "a task goes on", "done"],
)
async def test_what_cannot_work_in_the_pane_is_not_offered(
    events: tuple[Event, ...], offered: tuple[str, ...], useless: tuple[str, ...]
) -> None:
    async with driving(ScriptedSession(*events), LARGE) as bench:
        await bench.press("5")
        assert all(hint in bench.text() for hint in offered)
        assert not any(hint in bench.text() for hint in useless)


async def test_the_pane_tells_how_far_the_index_is() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE) as bench:
        await bench.live(Live(index=IndexStatus(312, 2066, vectors="held by another session")))
        assert "indexing 312 of 2,066 files · vectors: held by another session" in bench.text()
        await bench.live(Live(index=IndexStatus(2066, 2066, 2066, 14_002, vectors="ready")))
        assert "2,066 files, 14,002 pieces indexed" in bench.text()
        assert "vectors" not in bench.text()


def test_words_are_marked_across_the_colours_of_the_code() -> None:
    (line,) = mark_words([[("def to", Tone.KEY), ("tal(total", Tone.PLAIN), ("s)", Tone.DIM)]], ("total", "(", ""))
    assert "".join(text for text, _ in line) == "def total(totals)"
    assert "".join(text for text, tone in line if tone is Tone.HIT) == "total(total"
    assert mark_words(plain_lines("x\ny"), ()) == plain_lines("x\ny")
