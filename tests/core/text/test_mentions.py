"""Mentions in the user's words: what is one, what is none, and which files fit one that is being written."""

import pytest

from agent_workbench.core.text.mentions import (
    MOST_MENTIONS,
    FileRange,
    OpenMention,
    matching_paths,
    mention_of,
    mentioned_range,
    mentions,
    open_mention,
)

PATHS = ("README.md", "docs/a guide.md", "src/cart.py", "src/shop/cart.py", "tests/test_cart.py", "x:3")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("round in @src/cart.py, please", ("src/cart.py",)),
        ("see (@src/cart.py:3-9).", ("src/cart.py:3-9",)),
        ('read @"docs/a guide.md" and @src/cart.py and @src/cart.py', ("docs/a guide.md", "src/cart.py")),
        ("@../../etc/passwd", ("../../etc/passwd",)),
        ("write to ada@example.org", ()),
        ("@ alone, and an @", ()),
        ('@"unclosed', ()),
        ("@@twice", ("@twice",)),
        (" ".join(f"@f{number}.py" for number in range(99)), tuple(f"f{n}.py" for n in range(MOST_MENTIONS))),
    ],
)
def test_what_the_words_mention(words: str, found: tuple[str, ...]) -> None:
    assert mentions(words) == found


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("src/cart.py", FileRange("src/cart.py")),
        ("src/cart.py:3", FileRange("src/cart.py", 3)),
        ("src/cart.py:3-9", FileRange("src/cart.py", 3, 9)),
        ("x:3", FileRange("x:3")),
        ("cart.py", None),
        ("./src/cart.py", None),
        ("../../etc/passwd", None),
        ("/etc/passwd", None),
        ("", None),
    ],
)
def test_only_the_exact_path_of_a_file_counts(asked: str, place: FileRange | None) -> None:
    assert mentioned_range(asked, PATHS) == place


@pytest.mark.parametrize("place", ["src/cart.py", "src/cart.py:3-9", "docs/a guide.md", "a,b.py", "größe.py", "(x).py"])
def test_a_mention_is_read_as_the_place_it_was_made_of(place: str) -> None:
    assert mentions(f"in {mention_of(place)}, so") == (place,)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("fix @", OpenMention(4, "")),
        ("fix @src/ca", OpenMention(4, "src/ca")),
        ('fix @"src', OpenMention(4, "src")),
        ("fix @src/cart.py and", None),
        ("ada@exa", None),
        ("", None),
    ],
)
def test_the_mention_under_the_cursor(before: str, found: OpenMention | None) -> None:
    assert open_mention(before) == found


def test_names_come_before_folders_and_the_rest() -> None:
    assert matching_paths(PATHS, "cart", 3) == ("src/cart.py", "src/shop/cart.py", "tests/test_cart.py")
    assert matching_paths(PATHS, "SRC/S", 9) == ("src/shop/cart.py",)
    assert matching_paths(PATHS, "", 2) == ("x:3", "README.md")
    assert matching_paths(PATHS, "../", 9) == ()
