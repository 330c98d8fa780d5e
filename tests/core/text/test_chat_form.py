"""The form of an answer in a chat: what is a call, what is the reply, and what only looks like one."""

import pytest

from agent_workbench.core.text.chat_form import ChatForm, split_chat_answer, split_streamed

CALL = 'Action: list_files\n{"glob": "*"}'


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Answer: yes", ChatForm(reply="yes")),
        ("Thought: I know.\nAnswer: yes\n\n- a", ChatForm("I know.", "yes\n\n- a")),
        (f"Thought: I look.\n{CALL}", ChatForm("I look.", call=CALL)),
        (CALL, ChatForm(call=CALL)),
        ("Just words.", ChatForm(reply="Just words.")),
        ("Thought: only this", ChatForm("only this")),
    ],
)
def test_the_first_label_decides(text: str, form: ChatForm) -> None:
    assert split_chat_answer(text) == form


@pytest.mark.parametrize(
    "text",
    [
        f"The form is:\n\n{CALL}",
        f"Answer: the form is\n{CALL}",
        f"> Thought: quoted\n> {CALL}",
        f"```\nThought: quoted\n{CALL}\n```",
        f"Sure.\nThought: now\n{CALL}",
        f"Answer:\nThought: now\n{CALL}",
    ],
)
def test_a_call_within_a_reply_is_none(text: str) -> None:
    form = split_chat_answer(text)
    assert form.reply is not None
    assert not form.call
    assert CALL.split("\n", maxsplit=1)[0] in form.reply


@pytest.mark.parametrize("text", ["", "  ", "T", "Answ", "Thought:", "Thought: yes", "Thought: yes\nAns"])
def test_nothing_is_shown_as_a_reply_before_it_is_one(text: str) -> None:
    assert split_streamed(text).reply is None


@pytest.mark.parametrize(("text", "reply"), [("The", "The"), ("Answer: a", "a"), ("Answers", "Answers")])
def test_a_reply_streams(text: str, reply: str) -> None:
    assert split_streamed(text).reply == reply
