import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.text.repetition import (
    MOST_CHARS,
    MOST_DATA_CHARS,
    MOST_SAME_CHARS,
    RepetitionDetector,
    find_repetition,
)
from bench.edit_sources import odd_files

BLOCK = "    def test_area(self):\n        assert area(2, 5) == 10\n\n"
ZEROS = "    " + "0x00, " * 12 + "\n"


@pytest.mark.parametrize(
    ("block", "most"),
    [
        (BLOCK, MOST_CHARS),
        ("very ", MOST_CHARS),
        ("x = x + 1\n" + BLOCK * 2 + "y = 2\n", 350),
        ("".join(f"name_{letter} = read_{letter}()\n" for letter in "abcdefghijklmnopqrst"), 540),
        (ZEROS, MOST_DATA_CHARS),
        (" " * 40 + "\n", MOST_DATA_CHARS),
        ("\n", MOST_DATA_CHARS),
        ("!", MOST_SAME_CHARS),
    ],
    ids=["lines", "words", "long block", "longer block", "data", "blanks", "line ends", "one sign"],
)
def test_a_loop_is_found_soon_and_what_came_before_is_told(block: str, most: int) -> None:
    before = "Thought: I write it.\nclass Area:\n"
    found = find_repetition(before + block * (1 + 12_000 // len(block)))
    assert found is not None
    assert found.period == len(block) or (len(block) - 1) % found.period == 0
    assert found.chars <= most + 1
    assert len(before) <= found.end <= len(before) + len(block)


@pytest.mark.parametrize(
    "text",
    [
        BLOCK * 4,
        ZEROS * 10,
        "TYPES = [\n" + "    ('nextgroup', 'nextgroup'),\n" * 30,
        '{"types": "[' + '\\"arn:aws:device\\",\\n' * 30,
        "".join(f"    ({number}, {number * 7 % 31}),\n" for number in range(400)),
        "".join(f"    0x{number:04x}: 'CHARACTER {number}',\n" for number in range(400)),
        "".join(f".m-{number} {{ margin: {number}px; }}\n" for number in range(300)),
        "".join(f"INSERT INTO part VALUES ({number}, 'part {number}', NULL, NULL, 0);\n" for number in range(200)),
        "-" * 300,
        *(data.decode("utf-8", "replace") for data in odd_files().values()),
    ],
)
def test_tables_and_code_are_no_loop(text: str) -> None:
    assert find_repetition(text) is None


@given(st.text("ab\n", max_size=40), st.text("ab \n", min_size=1, max_size=60), st.integers(1, 40))
def test_what_is_found_repeats_exactly_and_does_not_depend_on_the_pieces(before: str, block: str, size: int) -> None:
    text = before + (block + "word = word\n") * 40
    detector = RepetitionDetector()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    found = next((each for piece in pieces if (each := detector.feed(piece))), None)
    assert found is not None
    again = text[found.end : found.end + found.chars]
    assert again == text[found.end - found.period : found.end - found.period + found.chars]
    first = find_repetition(text)
    assert first is not None
    assert (first.end, first.period) == (found.end, found.period)


def test_an_endless_text_without_a_loop_takes_bounded_memory() -> None:
    detector = RepetitionDetector()
    for number in range(20_000):
        assert detector.feed(f"{number} ") is None
    assert len(vars(detector)["_text"]) + len(vars(detector)["_last"]) < 70_000
    assert any(detector.feed(BLOCK) for _ in range(10))
