"""Rewritten pieces: how an answer is read, found again in the file, and put into it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_piece import BOM, FilePiece, locate, rewrite_file
from agent_workbench.core.patch.piece_grammar import piece_rules
from agent_workbench.core.patch.rewritten_pieces import fence_for, read_rewrites
from agent_workbench.core.patch.values import FileContent
from tests.gbnf_sampler import sample

CART = """\
import math


def total(prices):
    return sum(prices)


class Cart:
    def count(self):
        return 1

    def price(self):
        return 2
"""
LINE = st.text(st.characters(exclude_characters="\x00", categories=("L", "N", "P", "S", "Zs")), max_size=12)


def piece(text: str, first: int, last: int, number: int = 1) -> FilePiece:
    return FilePiece(number, "shop/cart.py", first, (tuple(text.split("\n")[first - 1 : last]),))


def rewritten(text: str, *pairs: tuple[FilePiece, str]) -> str:
    content = FileContent(text.encode())
    return rewrite_file(content, [(each, new.split("\n")) for each, new in pairs]).content.data.decode()


@given(
    lines=st.lists(LINE, min_size=1, max_size=8, unique=True),
    new=st.lists(LINE.map(lambda line: f"x{line}"), min_size=1, max_size=4),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    bom=st.booleans(),
    data=st.data(),
)
def test_a_piece_is_replaced_and_nothing_else(
    lines: list[str], new: list[str], end: str, last: bool, bom: bool, data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(lines)))
    final = data.draw(st.integers(first, len(lines)))
    lines = [f"y{line}" for line in lines]
    text = (BOM if bom else "") + end.join(lines) + (end if last else "")
    if end not in text:  # A file of one line without an end says nothing of its line ends.
        end = "\n"
    shown = FileContent(text.encode()).data.decode().split(end)[first - 1 : final]
    part = FilePiece(1, "a.txt", first, (tuple(shown),))
    done = rewrite_file(FileContent(text.encode()), [(part, new)])
    expected = (BOM if bom else "") + end.join([*lines[: first - 1], *new, *lines[final:]]) + (end if last else "")
    assert done.content.data.decode() == expected
    (now,) = done.pieces
    assert (
        expected.split(end)[now.first_line - 1 :][: len(new)]
        == ([BOM + new[0]] if bom and first == 1 else [new[0]]) + new[1:]
    )


def test_pieces_of_one_file_are_put_in_from_wherever_they_are_named() -> None:
    both = rewritten(
        CART,
        (piece(CART, 12, 13, 2), "    def price(self):\n        return 3\n        # three"),
        (piece(CART, 4, 5), "def total(prices):\n    return math.fsum(prices)"),
    )
    assert both == CART.replace("sum(prices)", "math.fsum(prices)").replace("return 2", "return 3\n        # three")


@pytest.mark.parametrize("indent", ["", "  ", "        "])
def test_a_uniform_shift_of_the_indentation_is_repaired(indent: str) -> None:
    new = f"{indent}def price(self):\n{indent}    return 3"
    assert rewritten(CART, (piece(CART, 12, 13), new)) == CART.replace("return 2", "return 3")


@pytest.mark.parametrize(
    ("first", "last", "new", "reason"),
    [
        (4, 5, "def total(prices):\n    # ... existing code ...\n    return 0", "leaves text out"),
        (4, 5, "def total(prices):\n    // rest of the code unchanged", "leaves text out"),
        (4, 5, "def total(prices):\n    # ...", "leaves text out"),
        (4, 5, "def total(prices):\n    prices = list(prices)\n    ...\n    return 0", "leaves text out"),
        (4, 5, "def total(prices):\n    ...\n    return 0", "leaves text out"),
        (4, 5, "import math\n…\ndef total(prices):\n    return 0", "leaves text out"),
        (4, 5, "def total(\n    prices,\n) -> int: # sum", "ends where a body has to begin"),
        (4, 5, "def total(prices):\n    if prices:  # some\n        # so: what then", "ends where a body has to begin"),
        (12, 13, "\tdef price(self):\n\t\treturn 3", "indented in another way"),
        (1, 13, "\n\n", "would be gone"),
    ],
)
def test_a_text_that_is_not_whole_is_refused(first: int, last: int, new: str, reason: str) -> None:
    with pytest.raises(PatchError, match=reason):
        rewritten(CART, (piece(CART, first, last), new))


@pytest.mark.parametrize(
    "new",
    [
        "def total(prices):\n    # the rest is summed\n    return sum(prices)",
        "def total(prices): ...",
        "def total(prices):\n    ...",
        "def total(prices):  # noqa\n    # not yet\n    ...",
        "def total(prices):\n    return prices[\n        ...\n    ]",
        'def total(prices):\n    """Add.\n\n    >>> for each in x:\n    ...     sum(each)\n    ...\n    """\n    ...',
        "def amount(prices):\n    return sum(prices)",
        "",
    ],
)
def test_a_whole_text_is_taken(new: str) -> None:
    assert rewritten(CART, (piece(CART, 4, 5), new)) == CART.replace(
        "def total(prices):\n    return sum(prices)\n", f"{new}\n" if new else ""
    )


@pytest.mark.parametrize("between", ["", "    ...\n", "    …\n\n", "    # ...\n"])
@pytest.mark.parametrize("indent", ["    ", ""])
def test_the_beginnings_of_the_blocks_around_a_piece_are_dropped(between: str, indent: str) -> None:
    body = f"{indent}def price(self):\n{indent}    return 3"
    content = FileContent(CART.encode())
    made = rewrite_file(content, [(piece(CART, 12, 13), f"class Cart:\n{between}{body}".split("\n"))])
    assert made.content.data.decode() == CART.replace("return 2", "return 3")
    assert made.repairs[0] == "class Cart: stands above piece 1, so it was dropped"


def test_what_begins_a_block_within_the_piece_is_kept() -> None:
    text = "if a:\n    if a:\n        b = 1\n"
    assert rewritten(text, (piece(text, 2, 3), "if a:\n    b = 2")) == "if a:\n    if a:\n        b = 2\n"


def test_overlapping_pieces_are_refused() -> None:
    with pytest.raises(PatchError, match="overlap"):
        rewritten(
            CART, (piece(CART, 8, 13), "\n".join(CART.split("\n")[7:13])), (piece(CART, 12, 13, 2), "    price = 2")
        )


def test_a_piece_is_found_where_it_moved_to_and_refused_where_it_is_gone_or_twice() -> None:
    part = piece(CART, 12, 13)
    moved = CART.replace("import math", "import math\nimport os")
    assert rewritten(moved, (part, "    def price(self):\n        return 3")) == moved.replace("return 2", "return 3")
    twice = f"{moved}\n\nclass Other:\n" + "\n".join(part.lines) + "\n"
    for gone in (twice, CART.replace("return 2", "return 4")):
        assert locate(part, gone.split("\n")) is None
        with pytest.raises(PatchError, match=r"not in .* any more"):
            rewritten(gone, (part, "    def price(self):\n        return 3"))


def test_a_head_of_many_blanks_is_read_at_once() -> None:
    (read,) = read_rewrites(f"{' *' * 100_000}\n```\na\n```")
    assert (read.number, read.lines) == (0, ("a",))


def test_an_answer_is_read_up_to_the_next_step() -> None:
    body = "Piece 2\n```python\na = 1\n```\n### New file `b.py`\n````\n```\n````\nThought: and\nPiece 3\n```\nc\n```"
    assert [(each.number, each.path, each.lines) for each in read_rewrites(body)] == [
        (2, "", ("a = 1",)),
        (0, "b.py", ("```",)),
    ]


@pytest.mark.parametrize(
    "body", ["", "Piece 1\nno fence", "Piece 1\n```\ncut", "Piece 1\n```\na\n```\nPiece 1\n```\nb\n```"]
)
def test_an_answer_that_is_not_complete_is_refused(body: str) -> None:
    with pytest.raises(PatchError):
        read_rewrites(body)


DOC = '"""\nTotal\n    Adds up.\n"""\n'
COMMENT = "# Total\n#\n# Adds up.\n"
BODY = "def total(prices):\n    return max(prices)\n"


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        (f"{BODY}\n\n{DOC}", BODY.replace("max", "sum"), f"{BODY.replace('max', 'sum')}\n\n{DOC}"),
        (f"{BODY}\n{COMMENT}", BODY.replace("max", "sum"), f"{BODY.replace('max', 'sum')}\n{COMMENT}"),
        (f"{BODY}\n{DOC}\n", BODY.replace("max", "sum"), f"{BODY.replace('max', 'sum')}\n{DOC}\n"),
        # Reworded, written, short, or the docstring of a function: the new text says what it should be.
        (f"{BODY}\n{DOC}", f'{BODY}\n"""\nTotal\n"""\n', f'{BODY}\n"""\nTotal\n"""\n'),
        (f"{BODY}# Adds up.\n", BODY, BODY),
        (f"def total():\n    {DOC.replace(chr(10), chr(10) + '    ').rstrip()}\n", BODY, BODY),
        (f'"""Cart."""\n{BODY}X = 1\ny = """a"""\n', BODY.replace("max", "sum"), BODY.replace("max", "sum")),
        (f"{COMMENT}", BODY, BODY),
        (f"{BODY}X = 1\n", BODY, BODY),
        (f'{BODY}X = """\na\nb\nc\n"""\n', BODY, BODY),
    ],
)
def test_the_closing_text_of_a_file_is_kept_where_the_new_text_ends_before_it(old: str, new: str, after: str) -> None:
    lines = old.removesuffix("\n").split("\n")
    whole = FilePiece(1, "a.py", 1, (tuple(lines),))
    found = rewrite_file(FileContent(old.encode()), [(whole, new.removesuffix("\n").split("\n"))])
    assert found.content.data.decode() == after
    assert bool(found.repairs) == (new != after)


@given(st.text(max_size=60))
def test_no_text_closes_its_own_fence(text: str) -> None:
    lines = text.replace("\r", "").split("\n")
    fence = fence_for("\n".join(lines))
    (read,) = read_rewrites("\n".join(["Piece 7", fence, *lines, fence]))
    assert (read.number, read.lines) == (7, tuple(lines))


def test_each_sentence_of_the_grammar_rewrites_an_offered_piece_or_makes_a_new_file() -> None:
    imports = replace(piece(CART, 1, 1, 3), imports=True)
    pieces = (piece(CART, 4, 5), FilePiece(2, "README.md", 1, (("```", "x", "```"),)), imports)
    grammar = "\n".join(("root ::= pieces", *piece_rules(pieces, ["xname"], ['xname ::= "src/new.py"'])))
    chance = random.Random(5)
    for _ in range(60):
        read = [each.number or each.path for each in read_rewrites(sample(grammar, chance))]
        # Only imports follow another piece, and it is of the same file.
        assert read in ([1], [2], [3], [1, 3], ["src/new.py"])
