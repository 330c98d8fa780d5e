"""Markdown of a model: its parts, and what a hostile answer cannot do."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.views.blocks import Tone
from agent_workbench.views.markdown import MOST_CHARS, MOST_LEAD_CELLS, MarkdownPart, markdown_parts


def marked(part: MarkdownPart) -> list[tuple[str, Tone]]:
    return [(part.text[mark.start : mark.end], mark.tone) for mark in part.marks]


def rows(text: str) -> list[str]:
    """Return the parts as they read, without tones."""
    return [f"{part.lead}{part.text}" for part in markdown_parts(text)]


def test_marks_of_a_paragraph_become_tones() -> None:
    (part,) = markdown_parts("**Three** *odd* `x = [1]` ~~old~~ [docs](https://a.example/b) \\*not\\*")
    assert part.text == "Three odd x = [1] old docs (https://a.example/b) *not*"
    assert marked(part) == [
        ("Three", Tone.STRONG),
        ("odd", Tone.EMPHASIS),
        ("x = [1]", Tone.CODE),
        ("old", Tone.GONE),
        (" (https://a.example/b)", Tone.DIM),
    ]


def test_headings_items_quotes_and_rules_have_their_leads() -> None:
    text = "# Head\nwords\nmore\n\n3. one\n   - inner\n4. two\n\n> said\n> so\n\n---"
    assert rows(text) == ["Head", "words\nmore", "3. one", "   • inner", "4. two", "│ said\nso", "───"]
    parts = markdown_parts(text)
    assert [part.tone for part in parts[:2]] == [Tone.STRONG, Tone.PLAIN]
    assert parts[3].rest == "     "
    assert [part.space_before for part in parts] == [False, True, True, False, False, True, True]


@pytest.mark.parametrize("fence", ["```python\n# no head\n**x**\n```", "~~~python\n# no head\n**x**"])
def test_code_stays_as_it_is(fence: str) -> None:
    (part,) = markdown_parts(fence)
    assert (part.text, part.language, part.tone, part.marks) == ("# no head\n**x**", "python", Tone.CODE, ())


def test_a_table_has_columns() -> None:
    (part,) = markdown_parts("| code | off |\n| --- | ---: |\n| `VIP` | 25 |\n| 漢字 | **1** |")
    assert part.text == "code  off\n────  ───\nVIP   25\n漢字  1"
    assert ("VIP", Tone.CODE) in marked(part)
    assert marked(part)[0] == ("code", Tone.STRONG)


@pytest.mark.parametrize(
    "text",
    [
        "|a|b|\n|-|-|\n|c|d|hidden|",
        "0. first\n1. second",
        "\n".join(f"{'  ' * depth}- {depth}" for depth in range(40)),
        "> " * 60 + "deep",
        "1. " * 60 + "deep",
        "[a]: https://a.example",
        "<script>x</script>",
        "&#x202e;&#27;[2J",
        "[x](javascript:alert)",
        "<https://a.example> <https://a.example/%1B[2J%0A%E2%80%AEb> <a@b.example>",
        "|" + "a|" * 40 + "\n|" + "-|" * 40 + "\n|" + "b|" * 40,
    ],
)
def test_what_would_be_left_out_is_shown_as_it_is_written(text: str) -> None:
    assert "\n".join(rows(text)) == text


def test_addresses_are_text_on_one_line() -> None:
    (part,) = markdown_parts("![alt](https://a.example/%E2%80%AE) [x](<https://b.example/%0A>)")
    assert part.text == "alt (https://a.example/%E2%80%AE) x (https://b.example/%0A)"


HOSTILE = {
    "brackets": ("[" * 1990 + "\n\n") * 25,
    "links": ("[a](" * 490 + "\n\n") * 25,
    "images": ("![[]()" * 330 + "\n\n") * 25,
    "stars": ("*a **b _c " * 199 + "\n\n") * 25,
    "quotes": ">" * 50_000,
    "items": "- " * 25_000,
    "nested": "\n".join("  " * depth + "- a" for depth in range(220)),
    "list": "- a\n" * 12_500,
    "table": "|a|b|\n|-|-|\n" + "|a|b|\n" * 8_000,
    "columns": "|a" * 8_000 + "\n" + "|-" * 8_000 + "\n" + "|a" * 8_000,
    "short rows": "|a" * 4_000 + "\n" + "|-" * 4_000 + "\n" + "|\n" * 500,
    "references": "[a]: b\n" * 7_000,
    "lines": "a\n" * 25_000,
    "fences": "```\n" * 12_500,
    "ticks": "".join("`" * number + "a" for number in range(310)),
    "addresses": "<http://a " * 5_000,
    "one word": "x" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_read_at_once(name: str) -> None:
    text = HOSTILE[name]
    started = time.process_time()
    parts = markdown_parts(text)
    assert time.process_time() - started < 0.5
    assert sum(len(part.text) for part in parts) <= 2 * len(text)
    assert max(len(part.lead) for part in parts) <= MOST_LEAD_CELLS + 2


def test_what_is_beyond_the_limit_is_shown_as_it_is_written() -> None:
    text = "**a** b\n\n" * 3_000
    parts = markdown_parts(text)
    assert parts[0].text == "a b"
    assert parts[-1].text.startswith("**a** b")
    assert sum(part.text.count("a") for part in parts) == 3_000
    assert sum(len(part.text) for part in parts[:-1]) < MOST_CHARS


@given(st.text(alphabet="*_`~[]()<>!#|-+>1.&;:\\ \na\t\x1b\u202e", max_size=300))
def test_no_answer_fails_or_brings_a_control_character(text: str) -> None:
    parts = markdown_parts(sanitize(text))
    shown = "".join(f"{part.lead}{part.text}" for part in parts)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    for part in parts:
        assert len(part.lead) == len(part.rest)
        ends = [0, *(place for mark in part.marks for place in (mark.start, mark.end))]
        assert ends == sorted(ends)
        assert ends[-1] <= len(part.text)
