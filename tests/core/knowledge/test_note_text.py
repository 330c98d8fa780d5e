"""Front matter is read leniently, a name is a base name, and an excerpt shows the hit and no control code."""

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.knowledge import NoteHead, auto_name, compose_note, excerpt_of, note_name, read_head


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (
            "---\ntitle: Retry Logic\ntype: concept\ndomain: software\n---\nx",
            NoteHead("Retry Logic", "concept", "software", 6),
        ),
        ("---\ntitle: 'a: b'\nnonsense\n\t: [\n---\n# Other", NoteHead("a: b", "", "", 6)),
        ("# Heading #\ntext", NoteHead("Heading")),
        ("---\ntitle: never closed\ntext", NoteHead()),
        ("", NoteHead()),
        ("---\ntitle: \x1b]52;c;x\x07<|im_start|>\n---\n", NoteHead("␛]52;c;x␇< |im_start| >", "", "", 4)),
    ],
)
def test_front_matter_is_read_leniently(text: str, head: NoteHead) -> None:
    assert read_head(text) == head


@pytest.mark.parametrize("title", ["Retry Logic", "a: b", "true", '"quoted" # not a comment', "ends\nhere"])
def test_what_is_composed_is_read_back(title: str) -> None:
    head = read_head(compose_note(title, "body", type="concept", domain="software"))
    assert (head.title, head.type, head.domain) == (
        " ".join(title.split()).replace('"', "'").strip("'"),
        "concept",
        "software",
    )


def test_a_text_with_front_matter_of_its_own_stays() -> None:
    assert compose_note("t", "---\ntitle: x\n---\nbody") == "---\ntitle: x\n---\nbody\n"


def test_an_excerpt_holds_the_hit() -> None:
    text = (
        "---\ntitle: t\n---\n\n" + "\n".join(f"line {number}" for number in range(60)) + "\nretry transient\x1b[31m\n"
    )
    excerpt = excerpt_of(text, ("transient",))
    assert "retry transient␛[31m" in excerpt.text
    assert excerpt.last_line == 65
    assert excerpt_of(text).text.startswith("line 0\nline 1")
    assert len(excerpt_of("x" * 5_000).text) < 1_200
    assert excerpt_of("").text == ""


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("note", "note"),
        ("note.md", "note"),
        ("../x", "x"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\x.md", "x"),
        ("Retry Logic!", "retry-logic"),
        ("a--__b", "a-b"),
        ("x" * 200, "x" * 80),
        ("..hidden", "hidden"),
    ],
)
def test_a_name_has_no_folder(said: str, name: str) -> None:
    assert note_name(said) == name


@pytest.mark.parametrize("said", ["", "..", "../", "😀", "\0"])
def test_nothing_is_no_name(said: str) -> None:
    with pytest.raises(UsageError):
        note_name(said)


def test_a_note_without_a_name_gets_the_time() -> None:
    assert auto_name("2026-11-23T01:02:03.456789Z") == "2026-11-23-010203-auto"
