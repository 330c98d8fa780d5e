"""What is shown of found code: whole files, parts of a definition as one, and each with its context."""

import re

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.retrieval.index.segments import blob_id
from agent_workbench.adapters.retrieval.passages import passages
from agent_workbench.adapters.retrieval.scoring import FoundChunk

LINE = "    value = compute(value)  # once more\n"
METHODS = "".join(f"    def method_{number}(self):\n{LINE * 30}\n" for number in range(6))
LARGE = f"import compute\n\n\nclass Large:\n{METHODS}".encode()
SIZE = 32  # lines of a method


def method(number: int, score: float, path: str = "large.py", data: bytes = LARGE) -> FoundChunk:
    first = 5 + SIZE * number
    return FoundChunk(path, blob_id(data), first, first + 30, f"Large.method_{number}", score, (f"word_{number}",))


def test_a_small_file_is_whole_and_once() -> None:
    data = b"def a():\n    return 1\n\n\ndef b():\n    return 2\n"
    found = [
        FoundChunk("s.py", blob_id(data), 5, 6, "b", 2.0, ("b",)),
        FoundChunk("s.py", blob_id(data), 1, 2, "a", 1.0, ("a",)),
    ]
    (chunk,) = passages(found, {"s.py": data}, 400).chunks
    assert (chunk.first_line, chunk.last_line, chunk.symbol, chunk.score) == (1, 6, "b", 2.0)
    assert chunk.text == data.decode().removesuffix("\n")
    assert chunk.why == ("b", "a")
    assert chunk.context == ""


def test_parts_of_a_definition_become_one_at_the_place_of_the_better_one_and_others_stay_apart() -> None:
    """What is shown as one is rewritten as one: never the end of a function with the next."""
    parts = [method(2, 3.0), method(1, 2.0), replace(method(3, 1.5), symbol="Large.method_2")]
    made = passages(parts, {"large.py": LARGE}, 100)
    assert made.is_current
    places = [(chunk.first_line, chunk.last_line, chunk.score) for chunk in made.chunks]
    assert places == [(5 + 2 * SIZE, 5 + 3 * SIZE + 30, 3.0), (5 + SIZE, 5 + SIZE + 30, 2.0)]
    assert made.chunks[0].why == ("word_2", "word_3")
    lines = LARGE.decode().split("\n")
    assert made.chunks[0].text == "\n".join(lines[4 + 2 * SIZE : 5 + 3 * SIZE + 30])


DOCUMENTED = """\
class Cart:
    @cached
    def total(self):
        '''Sum.
{}        '''
        {}

    def other(self):
        return 2
"""


@pytest.mark.parametrize(("body", "whole"), [(1, True), (100, False)])
def test_of_a_function_that_is_short_without_its_docstring_all_is_shown_if_asked_for(body: int, *, whole: bool) -> None:
    """The second half of the docstring of xmltodict.parse stood in a prompt as code."""
    code = "; ".join(["a = max(self.prices)"] * body)
    data = (DOCUMENTED.format("        >>> total([])\n" * 400, code) + "# more\n" * 400).encode()
    # Parts of one function under two names: what is rewritten never overlaps.
    parts = [("Cart.total", 100, 120), ("other", 200, 220), ("Cart.other", 408, 409)]
    found = [FoundChunk("s.py", blob_id(data), first, last, symbol, 2.0, ()) for symbol, first, last in parts]
    made = passages(found, {"s.py": data}, 100, to_rewrite=True).chunks
    places = sorted((each.first_line, each.last_line) for each in made)
    assert places == ([(2, 406), (408, 409)] if whole else [(100, 120), (200, 220), (408, 409)])
    assert [each.tokens < 60 for each in made if each.first_line == 2] == [True] * whole
    as_found = passages(found, {"s.py": data}, 100).chunks
    assert [each.first_line for each in as_found] == [100, 200, 408]


def test_parts_of_a_function_keep_its_class_as_context() -> None:
    data = DOCUMENTED.format("        >>> total([])\n" * 400, "a = 1").encode()
    found = [FoundChunk("s.py", blob_id(data), at, at + 20, "Cart.total", 2.0, ()) for at in (100, 200)]
    (chunk,) = passages(found, {"s.py": data}, 100, to_rewrite=True).chunks
    assert (chunk.first_line, chunk.context) == (2, "class Cart:")


def test_tests_and_functions_with_cut_lines_or_no_body_are_shown_in_parts() -> None:
    long, unwritten = f"        {'a' * 600}\n", "raise NotImplementedError"
    for path, said, code in (("test_s.py", "", "a = 1"), ("s.py", long, "a = 1"), ("s.py", "", unwritten)):
        data = (DOCUMENTED.format(said + "        >>> total([])\n" * 40, code) + "# more\n" * 400).encode()
        found = [FoundChunk(path, blob_id(data), 20, 30, "Cart.total", 2.0, ())]
        assert [each.first_line for each in passages(found, {path: data}, 100, to_rewrite=True).chunks] == [20]


COMMENTS = [
    "/**\n * Sum of the prices.\n * In cents,\n * or none.\n */",
    "/* Sum of the prices.\n * In cents,\n * or none.\n */",
    "// Sum of the prices.\n// In cents,\n// or none.\n// Never less.",
]


OTHER_COMMENTS = [
    COMMENTS[1].replace(",\n *", ""),
    *("/* Sum", "// Sum"),
    f"{COMMENTS[0]} static",
    COMMENTS[0].replace("* In", "/* In */"),
    f"{COMMENTS[0]}\n/* More. */",
]


@pytest.mark.parametrize("comment", [*COMMENTS, *OTHER_COMMENTS])
@pytest.mark.parametrize("to_rewrite", [True, False])
def test_of_a_long_comment_above_a_piece_that_is_to_be_rewritten_the_first_line_is_its_context(
    comment: str, *, to_rewrite: bool
) -> None:
    text = f"#include <a.h>\n\n{comment}\nint total(int a) {{\n    return a;\n}}\n" + "int a;\n" * 400
    data, last = text.encode(), 6 + comment.count("\n")
    found = FoundChunk("s.c", blob_id(data), 3, last, "total", 1.0, ())
    (chunk,) = passages([found], {"s.c": data}, 100, to_rewrite=to_rewrite).chunks
    if to_rewrite and comment in COMMENTS:
        assert (chunk.first_line, chunk.text) == (last - 2, "int total(int a) {\n    return a;\n}")
        assert re.search(r"^.* Sum of the prices\.\n…$", chunk.context, re.MULTILINE)
    else:
        assert (chunk.first_line, chunk.text.partition("\n")[0]) == (3, comment.partition("\n")[0])


def test_a_piece_has_its_imports_once_and_its_class() -> None:
    apart, other = passages([method(0, 2.0), method(3, 1.0)], {"large.py": LARGE}, 100).chunks
    assert apart.context == "import compute\n…\nclass Large:"
    assert other.context == "class Large:\n…"
    assert apart.shown == f"large.py:5-35\n{apart.context}\n{apart.text}"


def test_a_file_that_changed_or_is_gone_is_left_out_and_reported() -> None:
    made = passages(
        [method(0, 2.0), method(1, 1.0, "gone.py"), method(2, 0.5, "old.py", b"old")],
        {"large.py": LARGE, "old.py": LARGE},
        100,
    )
    assert [chunk.path for chunk in made.chunks] == ["large.py"]
    assert not made.is_current


def test_a_long_line_is_cut_and_the_cut_is_stated() -> None:
    data = f'COLOURS = "{"x" * 9_000}"\nSIZE = 2\n'.encode()
    (chunk,) = passages([FoundChunk("s.py", blob_id(data), 1, 2, "", 1.0, ())], {"s.py": data}, 4_000).chunks
    cut, size = chunk.text.split("\n")
    assert len(cut) < 550
    assert cut.endswith("x … 8512 characters cut …")
    assert size == "SIZE = 2"
    assert chunk.last_line == 2
    assert chunk.tokens < 150


def test_prose_has_no_context() -> None:
    text = (b"import this\n" + b"word " * 40 + b"\n") * 40
    found = FoundChunk("notes.md", blob_id(text), 41, 44, "", 1.0, ())
    assert passages([found], {"notes.md": text}, 100).chunks[0].context == ""
