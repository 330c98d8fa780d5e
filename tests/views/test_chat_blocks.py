"""Blocks of a chat: replies in Markdown, results below them, and answers that stream."""

import pytest

from agent_workbench.core.events import (
    AbortAsked,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ChatReplied,
    ChatStarted,
    CodeRetrieved,
    Event,
    PromptBuilt,
    Recorded,
    UserSaid,
)
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.live import SessionUpdate, Streaming
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposal_kinds import ReadProposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.views.transcript import view_steps
from agent_workbench.views.transcript_blocks import chat_blocks, streamed_chat_blocks
from tests.fakes import runs


def folded(*events: Event) -> SessionState:
    every = (*runs.opening(), *events)
    return fold_all(Recorded(seq, "", event) for seq, event in enumerate(every))


REPLY = "# Head\ntext [@click=app.approve]\x1b[2J\n```py\ncode **x**\n```\n> quoted\nend"


def labels(*events: Event) -> list[tuple[str, str]]:
    entries = view_steps(SessionUpdate(folded(*events))).transcript.entries
    return [(block.label, block.folded or block.text) for entry in entries for block in entry.blocks if block.label]


def result(number: int, observation: str) -> tuple[Event, ...]:
    proposal = ReadProposal(ProposalId(f"P-{number}"), "read_file", "{}", number)
    return (ActionProposed(proposal), ActionFinished(proposal.id, ActionResult.OK, observation, 0.1))


def test_a_reply_is_markdown_that_nothing_foreign_controls() -> None:
    (block,) = chat_blocks(ChatReplied(1, REPLY))
    assert (block.label, block.markdown) == ("Reply", True)
    assert block.text == sanitize(REPLY)


def test_results_are_folded_below_the_reply() -> None:
    prompt = PromptBuilt(1, Purpose.CHAT, 2, 10, "sha")
    first = (ChatStarted(2), UserSaid("why?"), prompt, *result(1, "a\nb\nc"), prompt, *result(2, "one line"), prompt)
    turn = [
        ("Result", "⋯ 3 lines of read_file"),
        ("Prompt", "10 tokens"),
        ("Result", "one line"),
        ("Prompt", "10 tokens"),
    ]
    assert labels(*first)[-4:] == turn
    replied = labels(*first, ChatReplied(1, "so"))
    assert replied[-5:] == [turn[1], turn[3], ("Reply", "so"), turn[0], turn[2]]
    # The next message has its own.
    again = labels(*first, ChatReplied(1, "so"), UserSaid("and?"), prompt, *result(3, "x\ny"), ChatReplied(2, "no"))
    assert again[: len(replied)] == replied
    assert again[-4:] == [("You", "and?"), turn[1], ("Reply", "no"), ("Result", "⋯ 2 lines of read_file")]


def test_results_of_a_message_without_reply_stay_where_they_are() -> None:
    prompt = PromptBuilt(1, Purpose.CHAT, 2, 10, "sha")
    told = labels(
        *(ChatStarted(2), UserSaid("why?"), prompt, *result(1, "a\nb"), AbortAsked("stopped")),
        *(UserSaid("and?"), prompt, ChatReplied(1, "so")),
    )
    assert [label for label, _ in told[-6:]] == ["Prompt", "Result", "Abort", "You", "Prompt", "Reply"]


def test_a_long_reply_is_bounded() -> None:
    assert sum(len(block.text) for block in chat_blocks(ChatReplied(1, "x" * 10_000_000))) < 500_000


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
