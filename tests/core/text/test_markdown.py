"""Foreign text in markdown: neither markup, nor a link, nor a mention, nor the end of what holds it."""

import re

import pytest

from agent_workbench.core.text.markdown import cell, code, fenced, literal, plain

INSIDE_FENCE = "before\n````\n# a heading\n</details>\n```"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Add 3 * 120 + 450.", "Add 3 \\* 120 + 450."),
        ("[click](https://evil.example) <img src=x>", "\\[click\\](https:<!-- -->//evil.example) \\<img src=x\\>"),
        (
            "fixes #12, GH-3 of @ada, www.evil.example",
            "fixes \\#<!-- -->12, GH-<!-- -->3 of @<!-- -->ada, www<!-- -->.evil.example",
        ),
        ("- [x] done", "\\- \\[x\\] done"),
        ("1. first", "1<!-- -->. first"),
        ("two\nlines\x1b[31m", "two lines␛\\[31m"),
        ("&lt;b&gt; $x$ |", "\\&lt;b\\&gt; \\$x\\$ \\|"),
    ],
)
def test_prose_is_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("T-1 done: committed on agent/T-1", "T-1 done: committed on agent/T-1"),
        ("Keep test_a.py and b_c.py as they are", "Keep `test_a.py` and `b_c.py` as they are"),
        ("[click me](https://evil.example) **now**", "`[click me](https://evil.example) **now**`"),
        ("fixes #12 of @ada", "fixes `#12` of `@ada`"),
        ("- [x] done", "`- [x]` done"),
        ("1. first", "`1.` first"),
        ("see `x`", "see `x`"),
        ("commit, or (`agent init --private`) `keeps` it.", "commit, or (`agent init --private`) `keeps` it."),
        ("a`b` c", "`` a`b` `` c"),
        ("`b`_c_ d", "`` `b`_c_ `` d"),
        ("`[a](b) c", "`` `[a](b) `` c"),
        ("`a ``b` c", "``` `a ``b` ``` c"),
        ("", ""),
    ],
)
def test_words_with_marks_are_spans_of_code(text: str, shown: str) -> None:
    assert literal(text) == shown


@pytest.mark.parametrize("text", ["a `b` c", "``", "```x```", "`", "pl|ain"])
def test_a_span_of_code_ends_where_it_should(text: str) -> None:
    span = code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(fence)
    assert not re.search(rf"(?<!`){fence}(?!`)", span[len(fence) : -len(fence)])
    assert text in span


def test_nothing_ends_a_block_or_a_cell() -> None:
    first, *inside, last = fenced(INSIDE_FENCE).splitlines()
    assert first == last == "`````"
    assert "\n".join(inside) == INSIDE_FENCE
    assert cell("a|b") == "`a\\|b`"
    assert code("") == ""
