"""Blocks of a chat: replies in Markdown are set apart by lines, and stay literal."""

import pytest

from agent_workbench.core.events import ChatStarted, CodeRetrieved, Event, Recorded, UserSaid
from agent_workbench.core.fold import fold_all
from agent_workbench.core.live import SessionUpdate, Streaming
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.blocks import Tone
from agent_workbench.views.transcript.chat_blocks import reply_blocks, streamed_chat_blocks
from agent_workbench.views.transcript.transcript import view_steps
from tests.fakes import runs


def folded(*events: Event) -> SessionState:
    every = (*runs.opening(), *events)
    return fold_all(Recorded(seq, "", event) for seq, event in enumerate(every))


REPLY = "# Head\ntext [@click=app.approve]\x1b[2J\n```py\ncode **x**\n```\n> quoted\nend"


def test_headings_code_and_quotes_stand_out() -> None:
    assert [(block.tone, block.text) for block in reply_blocks(REPLY)] == [
        (Tone.STRONG, "Head"),
        (Tone.PLAIN, "text [@click=app.approve]␛[2J"),
        (Tone.ACCENT, "code **x**"),
        (Tone.DIM, "> quoted"),
        (Tone.PLAIN, "end"),
    ]


@pytest.mark.parametrize("text", ["```\n# no heading\n> no quote", "~~~\n# no heading\n```\n> no quote"])
def test_an_open_fence_holds_the_rest(text: str) -> None:
    assert {block.tone for block in reply_blocks(text)} == {Tone.ACCENT}


def test_a_long_reply_is_bounded() -> None:
    assert sum(len(block.text) for block in reply_blocks("x" * 10_000_000)) < 500_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Tho", "▌"),
        ("Thought: I look", "I look"),
        ("Thought: a\nAction: grep\n{", "grep"),
        ("Thought: a\nAnswer: be", "be▌"),
        ("plain", "plain▌"),
    ],
)
def test_an_answer_streams_in_its_parts(text: str, shown: str) -> None:
    assert shown in [block.text for block in streamed_chat_blocks(Streaming(text=text))]


def test_the_search_for_a_message_says_what_it_was_for() -> None:
    chunk = Chunk("shop/cart.py", 1, 3, "def total(): ...", 1.0)
    update = SessionUpdate(folded(ChatStarted(2), UserSaid("why?"), CodeRetrieved("why?", (chunk,))))
    view = view_steps(update)
    said, found = view.transcript.entries[-2:]
    assert (said.blocks[0].text, view.unsettled) == ("why?", ())
    assert [block.text for block in found.blocks] == ["1 piece of code found for your message", "shop/cart.py:1-3"]
