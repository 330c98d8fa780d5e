"""Cutting: whole lines, bounded pieces, nothing lost."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.retrieval.index.chunker import (
    CHARS_PER_TOKEN,
    Definition,
    Outline,
    chunk_text,
    markdown_outline,
)

LINES = st.lists(st.text("ab_X \t#=`\r\x0c\u2028é", max_size=30), max_size=40)


@st.composite
def outlines(draw: st.DrawFn, rows: int) -> Outline:
    """Make definitions that overlap, nest and touch as no grammar would make them."""

    def some(depth: int) -> tuple[Definition, ...]:
        found = []
        for _ in range(draw(st.integers(0, 3 if depth else 0))):
            first = draw(st.integers(0, rows - 1))
            last = draw(st.integers(first, rows - 1))
            signature = draw(st.integers(first, last))
            found.append(Definition(draw(st.sampled_from(["f", "g", ""])), first, last, signature, some(depth - 1)))
        return tuple(sorted(found, key=lambda each: each.first))

    return Outline(some(2))


@given(LINES, st.integers(1, 12), st.data())
def test_chunks_are_in_order_bounded_and_hold_every_word(
    lines: list[str], max_tokens: int, data: st.DataObject
) -> None:
    text = "\n".join(lines)
    rows = text.split("\n")
    chunks = chunk_text(text, data.draw(outlines(len(rows))), max_tokens)
    assert all(before.last_line < after.first_line for before, after in pairwise(chunks))
    shown: set[int] = set()
    for chunk in chunks:
        part = rows[chunk.first_line - 1 : chunk.last_line]
        assert part
        assert part[0].strip()
        assert part[-1].strip()
        assert sum(len(row) + 1 for row in part) <= max_tokens * CHARS_PER_TOKEN or len(part) == 1
        shown.update(range(chunk.first_line, chunk.last_line + 1))
    left_out = [row for number, row in enumerate(rows, 1) if number not in shown]
    assert not any(character.isalnum() for row in left_out for character in row)


def test_a_long_function_is_divided_where_it_pauses_and_keeps_its_signature() -> None:
    body = "\n\n".join("\n".join(f"    step_{block}_{line}()" for line in range(8)) for block in range(6))
    text = f"def migrate_everything(connection):\n{body}\n"
    outline = Outline((Definition("migrate_everything", 0, text.count("\n") - 1, 0),))
    chunks = chunk_text(text, outline, 60)
    assert len(chunks) > 3
    lines = text.split("\n")
    for chunk in chunks:
        assert chunk.symbol == "migrate_everything"
        assert {"migrate_everything", "migrat"} <= set(chunk.names)
    for chunk in chunks[1:]:
        assert "connection" in chunk.names
        assert lines[chunk.first_line - 2] == ""


def test_sections_of_a_document_are_chunks() -> None:
    text = "# Title\nwords\n\n## Use\n```sh\n# not a heading\nmake\n```\nmore\n\n## End\nlast\n"
    chunks = chunk_text(text, markdown_outline(text), 400)
    assert [(chunk.symbol, chunk.first_line, chunk.last_line) for chunk in chunks] == [
        ("Title", 1, 2),
        ("Use", 4, 9),
        ("End", 11, 12),
    ]
    assert chunk_text("no heading\n", markdown_outline("no heading\n"), 400)[0].symbol == ""
    assert chunk_text("", markdown_outline(""), 400) == ()


def test_one_line_definitions_stay_together_and_give_their_names() -> None:
    text = "X = 1\nf = lambda: 1\ng = lambda: 2\n"
    outline = Outline((Definition("f", 1, 1, 1), Definition("g", 2, 2, 2)))
    (chunk,) = chunk_text(text, outline, 400)
    assert chunk.symbol == "f, g"
    assert (chunk.first_line, chunk.last_line) == (1, 3)


def test_a_heading_takes_no_longer_the_more_blanks_are_in_it() -> None:
    """An expression that can match blanks in several ways takes hours for these, in which no other thread runs."""
    blanks = " " * 100_000
    text = f"# a{blanks}b\n## C #{blanks}##{blanks}\n#{blanks}x"
    a, c, x = markdown_outline(text).definitions
    assert (a.name.rstrip(), c.name, x.name) == ("a", "C #", "x")
    assert len(a.name) <= 80
