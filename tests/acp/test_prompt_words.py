"""Words of a prompt: links become mentions only for files of the repository."""

import pytest
from acp import schema as wire

from agent_workbench.acp.editor import MAX_NAME_CHARS, decider_name
from agent_workbench.acp.prompt_words import MAX_BLOCKS, MAX_EMBEDDED_CHARS, prompt_words
from agent_workbench.core.text.mentions import mentions

LOCAL = "file:" + "//"


def link(uri: str) -> wire.ResourceContentBlock:
    return wire.ResourceContentBlock(type="resource_link", name="a name", uri=uri)


@pytest.mark.parametrize(
    ("uri", "mentioned"),
    [
        (f"{LOCAL}/repo/src/a.py", "src/a.py"),
        (f"{LOCAL}/repo/src/a%20b.py#L3:9", "src/a b.py:3-9"),
        ("/other/src/a.py#L7", "src/a.py:7"),
        (f"{LOCAL}/repo/../etc/passwd", ""),
        (f"{LOCAL}/repository/a.py", ""),
        (f"{LOCAL}host/repo/a.py", ""),
        ("https://example.org/repo/a.py", ""),
        (f"{LOCAL}/repo/a\0b", ""),
        (f"{LOCAL}[", ""),
        (f"{LOCAL}/repo/a%22%20@b.py%20%22", ""),
        (f"{LOCAL}/repo/a%0A@b.py", ""),
    ],
)
def test_a_link_is_a_mention_of_a_file_below_the_repository(uri: str, mentioned: str) -> None:
    text = wire.TextContentBlock(type="text", text="Look at")
    words = prompt_words([text, link(uri)], ("/repo", "/other"))
    assert mentions(words) == ((mentioned,) if mentioned else ())
    assert mentioned or "not read" in words


def test_a_text_that_comes_with_a_prompt_is_a_part_of_it_and_mentions_nothing() -> None:
    def embedded(uri: str, text: str) -> wire.EmbeddedResourceContentBlock:
        return wire.EmbeddedResourceContentBlock(
            type="resource", resource=wire.TextResourceContents(uri=uri, text=text)
        )

    words = prompt_words(
        [embedded("zed:///rules", 'Be short.\n@.env "@a b"\x1b[2J```'), embedded("/repo/a.py", "x = 1")], ("/repo",)
    )
    assert words == "'zed:///rules':\n````\nBe short.\n@ .env \"@ a b\"␛[2J```\n````\n @a.py"
    assert mentions(words) == ("a.py",)
    long = prompt_words([embedded("zed:///rules", "x" * (MAX_EMBEDDED_CHARS + 9))], ())
    assert long.endswith("(9 more characters are left out)")
    blob = wire.BlobResourceContents(uri=f"{LOCAL}/other/b.png", blob="QQ==")
    bytes_of = wire.EmbeddedResourceContentBlock(type="resource", resource=blob)
    assert "is outside of the repository and is not read" in prompt_words([bytes_of], ("/repo",))


def test_what_no_model_takes_is_named_and_the_rest_is_bounded() -> None:
    image = wire.ImageContentBlock(type="image", data="QQ==", mime_type="image/png")
    assert "image" in prompt_words([image], ())
    words = prompt_words([wire.TextContentBlock(type="text", text="x")] * (MAX_BLOCKS + 3), ())
    assert words.endswith("(3 more parts of the message are left out)")


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("Zed", "acp:Zed"),
        (None, "acp:unknown client"),
        ("\x1b[2J\n\u202euser", "acp:2J user"),
        ("policy:all", "acp:policy all"),
        ("x" * 10_000, f"acp:{'x' * MAX_NAME_CHARS}"),
    ],
)
def test_the_name_of_a_client_is_plain(name: str | None, by: str) -> None:
    assert decider_name(name) == by
