"""Blocks of a chat: replies in Markdown are set apart by lines, and stay literal."""

import pytest

from agent_workbench.core.live import Streaming
from agent_workbench.views.blocks import Tone
from agent_workbench.views.transcript.chat_blocks import reply_blocks, streamed_chat_blocks

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
