"""What goes before the model: words of the user, pins, the receipt, summaries, and what it thinks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.keys import _character_to_key
from textual.widgets import TextArea

from agent_workbench.core.events import (
    ActionProposed,
    Author,
    ChunkDropped,
    ChunkPinned,
    ContextFilled,
    PromptBuilt,
    PromptPart,
    UserSaid,
)
from agent_workbench.core.fold import fold_all
from agent_workbench.core.intents import (
    ApproveProposal,
    CompactContext,
    DropChunk,
    EditProposal,
    PinChunk,
    SayToModel,
    SkipProposal,
)
from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import COMPACT, shown_sha
from agent_workbench.core.settings import Permission
from agent_workbench.tui.widgets.rows import entry_rows
from agent_workbench.views.transcript import view_steps
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, Driver, driving
from tests.tui.scenes import receipts


@given(st.text("ab \n", min_size=1, max_size=400))
def test_thinking_takes_three_rows_at_most_while_it_streams(thought: str) -> None:
    update = SessionUpdate(fold_all(()), Live(streaming=Streaming(thought=thought)))
    (entry,) = view_steps(update).unsettled
    for width in (30, 60):  # a label of its own row counts for none
        rows = [row for row in entry_rows(entry, 0, width, 12, expanded=False) if row.cells > row.lead]
        assert len(rows) <= 3


async def say(bench: Driver, text: str) -> None:
    await bench.press(":")
    bench.app.screen.query_one(TextArea).text = text
    await bench.press("enter")


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize("pane", ["0", "1", "2", "3", "4", "5"])
async def test_a_word_is_said_from_everywhere(pane: str) -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        await bench.press(pane)
        await say(bench, "  use integers\n")
        assert bench.session.intents == [SayToModel("use integers")]


async def test_a_word_is_typed_pasted_and_sent_whole() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press(":", *"no: ")
        bench.app.post_message(events.Paste("one\ntwo\x1b[2J"))
        await bench.press("ctrl+j", "x")
        assert not re.search("[\x00-\x09\x0b-\x1f]", bench.text())
        await bench.press("enter")
        (intent,) = bench.session.intents
        assert isinstance(intent, SayToModel)
        assert re.fullmatch(r"no: one\ntwo\S*\nx", intent.text)
        assert bench.screen.name == "workbench"


@pytest.mark.parametrize("keys", [("enter",), ("x", "escape")])
async def test_nothing_is_said_by_mistake(keys: tuple[str, ...]) -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        await bench.press(":", *keys)
        assert bench.session.intents == []
        assert bench.screen.name == "workbench"


async def test_a_word_that_is_too_long_is_kept_and_said_so() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        await say(bench, "x" * 16_001)
        assert bench.session.intents == []
        assert "too long: 16,001" in bench.text()


async def test_a_word_is_said_while_the_model_writes_and_stands_there_until_it_is_read() -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion()), SMALL) as bench:
        await bench.live(Live(activity="thinking", streaming=Streaming("Thought: Now I", 5, 1.0)))
        await say(bench, "[bold]use[/] integers")
        assert bench.session.intents == [SayToModel("[bold]use[/] integers")]
        await bench.record(UserSaid("[bold]use[/] integers\x1b[2J"))
        await bench.press("2")
        assert "[bold]use[/] integers␛[2J" in bench.text()
        assert "will be read with the next step" in bench.text()
        await bench.live(Live())
        await bench.record(*runs.answered(3, "Thought: Then integers."))
        assert "will be read" not in bench.text()


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("key", [":", "x", "p"])
async def test_a_recording_and_a_task_that_is_over_cannot_be_changed(key: str) -> None:
    over = () if key == ":" else (ScriptedSession(*runs.up_to_done()),)  # words are a new task then
    for session in (ScriptedSession(*runs.up_to_first_diff()).as_replay(), *over):
        async with driving(session) as bench:
            await bench.press("5", key)
            assert bench.session.intents == []
            assert bench.screen.name == "workbench"


async def test_code_is_pinned_unpinned_and_dropped_where_it_stands() -> None:
    chunk, other = runs.retrieved()[0].chunks
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE) as bench:
        await bench.press("5", "p")
        assert bench.session.intents.pop() == PinChunk(chunk.place)
        await bench.record(ChunkPinned(chunk))
        assert "◆" in bench.text()
        await bench.press("p")
        assert bench.session.intents.pop() == PinChunk(chunk.place, pinned=False)
        await bench.press("j", "x")
        assert bench.session.intents.pop() == DropChunk(other.place)
        await bench.record(ChunkDropped(other.place))
        await bench.press("p")
        assert bench.session.intents.pop() == PinChunk(other.place)


async def test_a_pin_keeps_a_preview_open_and_coloured() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE) as bench:
        await bench.press("5", "j", "enter")
        code = bench.pane("code")

        def colours() -> int:
            row = next(row for row in code.rows if "".join(text for text, _ in row.spans).endswith("in lines)"))
            return len({str(style) for _, style in row.spans})

        await bench.until(lambda: colours() > 3)
        await bench.record(ChunkPinned(runs.retrieved()[0].chunks[0]))
        assert colours() > 3


async def test_the_receipt_shows_each_part_and_goes_on_with_the_session() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("c")
        shown = bench.text()
        assert "prompt 2 of 2" in shown
        assert "1,380 of 16,384 tokens" in shown
        assert "shop/cart.py:15-17" in shown
        await bench.press("[")
        assert "prompt 1 of 2" in bench.text()
        await bench.press("[", "]")
        assert "prompt 2 of 2" in bench.text()
        await bench.record(*runs.answered(3, "Thought: on"))
        assert "prompt 3 of 3" in bench.text()
        await bench.press("c")
        assert bench.screen.name == "workbench"


async def test_what_stands_still_in_the_receipt_is_the_prompt_that_was_turned_to() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        await bench.press("c", "[")
        await bench.record(*runs.answered(3, "Thought: on"))
        assert "prompt 1 of 3" in bench.text()


@pytest.mark.slow
async def test_code_is_pinned_and_dropped_in_the_receipt_with_what_that_saves() -> None:
    chunk = runs.retrieved()[0].chunks[0]
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE) as bench:
        await bench.press("c", "p")
        assert bench.session.intents == []
        assert "only code and skills" in bench.text()
        await bench.press("j", "j")
        assert "drop (frees" in bench.text()
        await bench.press("p", "x")
        assert bench.session.intents == [PinChunk(chunk.place), DropChunk(chunk.place)]
        await bench.record(ChunkDropped(chunk.place))
        assert "dropped, cached" in bench.text()
        await bench.press("x")
        assert len(bench.session.intents) == 2


async def test_summing_up_asks_with_what_it_frees() -> None:
    async with driving(ScriptedSession(*receipts())) as bench:
        await bench.press("c", "S")
        assert re.search("frees up to 1,[0-9]{3} tokens", bench.text())
        await bench.look()
        await bench.press("y")
        assert bench.session.intents == [CompactContext()]


async def test_what_is_being_summed_up_is_not_offered_to_be_summed_up() -> None:
    async with driving(ScriptedSession(*receipts())) as bench:
        await bench.press("c")
        assert "summarize (frees" in bench.text()
        await bench.record(ContextFilled(3, Purpose.EXECUTOR, 900, 16_384, by=Author.USER))
        assert "summarize (frees" not in bench.text()
        await bench.press("S")
        assert "already being summarized" in bench.text()
        assert bench.screen.name == "receipt"


async def test_in_eighty_columns_a_dropped_piece_is_still_called_code() -> None:
    place = "tests/checkout/test_totals.py:12-13"
    asked = PromptBuilt(3, Purpose.EXECUTOR, 6, 900, "0" * 64, (PromptPart(f"code {place}", 90),))
    async with driving(ScriptedSession(*runs.up_to_reflexion(), asked), SMALL) as bench:
        await bench.press("c")
        named = re.compile(r"code …\S+\.py:12-13")
        assert named.search(bench.text())
        await bench.record(ChunkDropped(place))
        assert "✗" in bench.text()
        assert named.search(bench.text())


async def test_a_recording_shows_receipts_and_changes_nothing() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()).as_replay()) as bench:
        await bench.press("c")
        assert "prompt 2 of 2" in bench.text()
        await bench.press("j", "j", "p", "x", "S")
        assert bench.session.intents == []
        assert "this is a recording" in bench.text()


async def test_without_a_prompt_there_is_no_receipt() -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        await bench.press("c")
        assert bench.screen.name == "workbench"
        assert "no prompt was made yet" in bench.text()


async def test_a_summary_is_read_in_full_edited_and_approved_like_any_other_proposal() -> None:
    text = "\n".join(f"- fact {number}" for number in range(60))
    summary = runs.proposed(Permission.SUMMARY, COMPACT, "P-92", text)
    asked = ContextFilled(3, Purpose.EXECUTOR, 15_900, 16_384)
    async with driving(ScriptedSession(*runs.up_to_reflexion(), asked, ActionProposed(summary)), SMALL) as bench:
        await bench.look()
        assert "of steps 1–2" in bench.text()
        assert "lines not shown yet" in bench.text()
        await bench.press("a")
        assert bench.session.intents == []
        while bench.diff.unseen:
            await bench.press("a")
            await bench.look()
        await bench.press("a")
        assert bench.session.intents == [ApproveProposal(summary.id, shown_sha(summary))]
        await bench.look()
        await bench.press("e")
        bench.app.screen.query_one(TextArea).text = "shorter"
        await bench.press("ctrl+s")
        assert bench.session.intents[-1] == EditProposal(summary.id, "shorter")


@pytest.mark.parametrize("by", [Author.USER, Author.WORKBENCH])
async def test_only_a_summary_that_the_user_asked_for_can_be_done_without(by: Author) -> None:
    asked = ContextFilled(3, Purpose.EXECUTOR, 900, 16_384, by=by)
    summary = runs.proposed(Permission.SUMMARY, COMPACT, "P-92", "short")
    async with driving(ScriptedSession(*runs.up_to_reflexion(), asked, ActionProposed(summary))) as bench:
        await bench.look()
        await bench.press("s")
        assert bench.session.intents == ([SkipProposal(summary.id)] if by is Author.USER else [])


async def test_what_has_no_older_steps_is_not_summed_up() -> None:
    async with driving(ScriptedSession(*runs.opening(), *runs.started(), *runs.answered(1, "Thought: so"))) as bench:
        await bench.press("c", "S")
        assert "old enough" in bench.text()
        assert bench.screen.name == "receipt"


async def test_what_was_read_again_is_said_of_the_part_that_it_was() -> None:
    async with driving(ScriptedSession(*receipts()), LARGE) as bench:
        await bench.press("c")
        lines = [line for line in bench.text().split("\n") if "1,420 cached" in line or "observation" in line]
        assert "23 re-read" in lines[0]


@pytest.mark.parametrize("typed", [":abc", ":yes, a"])
async def test_a_word_that_comes_all_at_once_decides_nothing(typed: str) -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.look()
        for key in typed:
            bench.app.post_message(events.Key(_character_to_key(key), key))
        await bench.idle()
        assert bench.session.intents == []
        assert bench.screen.query_one(TextArea).text == typed[1:]
