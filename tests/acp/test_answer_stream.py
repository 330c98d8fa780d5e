"""An answer in pieces: together they are its thoughts and its reply, whatever arrives in between."""

import pytest

from agent_workbench.acp.editor import Update
from agent_workbench.acp.event_updates import AnswerStream
from agent_workbench.core.events import ModelAnswered, PromptBuilt
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import AnswerFigures, Purpose

STEP = "Thought: It subtracts.\n\nI change it.\nAction: write_diff\n--- a/x\n+++ b/x\n"
REPLY = "Thought: I know that.\nAnswer: It *adds*.\n\nSee calc.py."


def streamed(purpose: Purpose, text: str, reasoning: str = "") -> dict[str, str]:
    """Return what is sent of an answer that arrives letter by letter, by kind."""
    stream, sent = AnswerStream(), list[Update]()
    sent += stream.recorded(PromptBuilt(1, purpose, 1, 1, ""))
    for end in range(len(reasoning) + 1):
        sent += stream.streamed(Streaming(thought=reasoning[:end]))
    for end in range(len(text) + 1):
        sent += stream.streamed(Streaming(text=text[:end], thought=reasoning))
    sent += stream.recorded(ModelAnswered(1, text, AnswerFigures(), "e", reasoning=reasoning))
    sent += stream.streamed(Streaming(text=text, thought=reasoning))
    said: dict[str, str] = {}
    for each in sent:
        assert each.session_update in {"agent_thought_chunk", "agent_message_chunk"}
        said[each.session_update] = said.get(each.session_update, "") + each.content.text
    return said


@pytest.mark.parametrize(
    ("purpose", "text", "thought", "reply"),
    [
        (Purpose.EXECUTOR, STEP, "It subtracts.\n\nI change it.", None),
        (Purpose.REFLEXION, "Reflexion: The sign.", "The sign.", None),
        (Purpose.CHAT, REPLY, "I know that.", "It *adds*.\n\nSee calc.py."),
        (Purpose.CHAT, "Plain words", None, "Plain words"),
        (Purpose.SUMMARY, STEP, None, None),
    ],
)
def test_the_pieces_are_the_whole(purpose: Purpose, text: str, thought: str | None, reply: str | None) -> None:
    said = streamed(purpose, text)
    wanted = {"agent_thought_chunk": thought, "agent_message_chunk": reply}
    assert {kind: each.strip() for kind, each in said.items()} == {k: v for k, v in wanted.items() if v is not None}


def test_reasoning_comes_before_the_thought() -> None:
    assert streamed(Purpose.EXECUTOR, STEP, "Hm.")["agent_thought_chunk"].strip().startswith("Hm.\n\nIt subtracts.")
