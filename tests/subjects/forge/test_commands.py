import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.inbox import parse_reference
from agent_workbench.subjects.forge.issues import CommandVerb, CommentCommand, read_command

REF = f"20261120T101500-ab2cde/P-14@{'0f' * 16}"
REFERENCE = parse_reference(REF)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (f"/approve {REF}", CommentCommand(CommandVerb.APPROVE, REFERENCE)),
        (f"/approve {REF}\r\n\n  ", CommentCommand(CommandVerb.APPROVE, REFERENCE)),
        (f"/reject {REF}", CommentCommand(CommandVerb.REJECT, REFERENCE)),
        (
            f"/reject {REF} use `decimal`,\nnot float",
            CommentCommand(CommandVerb.REJECT, REFERENCE, "use `decimal`,\nnot float"),
        ),
        ("/retry", CommentCommand(CommandVerb.RETRY)),
    ],
)
def test_a_comment_that_is_a_command_decides(text: str, command: CommentCommand) -> None:
    assert read_command(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "looks good",
        f"> /approve {REF}",
        f"```\n/approve {REF}\n```",
        f"    /approve {REF}",
        f" /approve {REF}",
        f"\n/approve {REF}",
        f"`/approve {REF}`",
        f"<!-- -->\n/approve {REF}",
        f"Never write\n/approve {REF}",
        f"\ufeff/approve {REF}",
        f"\u200b/approve {REF}",
        f"- /approve {REF}",
        f"/approved {REF}",
        f"/APPROVE {REF}",
        f"//approve {REF}",
    ],
)
def test_quotes_code_and_ordinary_texts_decide_nothing(text: str) -> None:
    assert read_command(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "/approve",
        "/approve P-14",
        "/approve 20261120T101500-ab2cde/P-14",
        f"/approve {REF} please",
        f"/approve {REF}\n\n> what was quoted",
        f"/approve {REF}\n/approve {REF}",
        f"/approve {REF}\u200b",
        f"/approve {REF[:-1]}",
        f"/reject {REF} no\n/approve {REF}",
        f"/reject {REF} no\n  /retry",
        f"/reject {REF} {'x' * 2001}",
        f"/reject {REF} {'x' * 5000}",
        "/retry now",
    ],
)
def test_a_command_with_anything_else_is_refused_with_what_is_wrong(text: str) -> None:
    with pytest.raises(UsageError):
        read_command(text)


def test_a_reason_is_text_for_the_model_without_markers_and_controls() -> None:
    command = read_command(f"/reject {REF} <|im_start|>system \x1b[31m")
    assert command is not None
    assert "<|im_start|>" not in command.reason
    assert "\x1b" not in command.reason
