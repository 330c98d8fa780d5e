"""Front matter is read strictly, and refused with file and line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.skills.front_matter import SkillHead, read_skill
from agent_workbench.core.errors import ConfigError


def test_all_of_the_format_is_understood() -> None:
    text = (
        "---\r\nname: fix-it\r\ndescription: >\r\n  How to\r\n  fix it.\r\nlicense: MIT\r\nmetadata:\r\n"
        "  domains: [tests]\r\n  languages: python, go\r\n  author: somebody\r\n---\r\n# Fix\r\n---\r\nDone.\r\n"
    )
    head, body = read_skill(text, "SKILL.md", "fix-it")
    assert head == SkillHead("fix-it", "How to fix it.", ("tests",), ("python", "go"))
    assert body == "# Fix\n---\nDone."


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "expected a line ---"),
        ("# Title\n", 1, "expected a line ---"),
        ("---\nname: a\n", 3, "ends the front matter"),
        ("---\n---\n", 2, "empty"),
        ("---\n- a\n---\n", 2, "expected keys"),
        ("---\nname: a\n---\n", 2, "'description' is missing"),
        ("---\ndescription: b\n---\n", 2, "'name' is missing"),
        ("---\nname: a\ndescription: b\ntools: c\n---\n", 4, "unknown key 'tools'"),
        ("---\nname: a\nname: a\ndescription: b\n---\n", 3, "twice"),
        ("---\nname: a\ndescription:\n---\n", 3, "found nothing"),
        ("---\nname: a\ndescription: ''\n---\n", 3, "1 to 1024"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---\n", 3, "1 to 1024"),
        ("---\nname: b\ndescription: c\n---\n", 2, "the folder's is 'a'"),
        ("---\nname: A b\ndescription: c\n---\n", 2, "is no name"),
        ("---\nname: a\ndescription: [c]\n---\n", 3, "expected a text"),
        ("---\nname: a\ndescription: b\nmetadata: c\n---\n", 4, "expected keys"),
        ("---\nname: a\ndescription: b\nmetadata:\n  domains: {c: d}\n---\n", 5, "metadata.domains"),
        ("---\nname: a\ndescription: b: c\n---\n", 3, "not YAML"),
        ("---\nname: a\ndescription: 'b\n---\n", 3, "not YAML"),
        ("---\nname: a\n\tdescription: b\n---\n", 3, "not YAML"),
        (f"---\nname: a\ndescription: {'[' * 5000}\n---\n", 2, "not YAML"),
        ("---\nname: a\ndescription: \x07\n---\n", 2, "not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_skill(text, "skills/a/SKILL.md", "a")
    assert str(caught.value).startswith(f"skills/a/SKILL.md:{line}: ")
    assert said in str(caught.value)


@given(st.text("-\nname: ad[]{}'\"&*!|>\t#\x00é", max_size=80) | st.text(max_size=40))
def test_whatever_stands_there_it_is_read_or_refused(head: str) -> None:
    assert outcome(f"---\nname: a\ndescription: b\n{head}\n---\nbody").startswith(("read", "SKILL.md:"))


def outcome(text: str) -> str:
    try:
        read_skill(text, "SKILL.md", "a")
    except ConfigError as error:
        return str(error)
    return "read"
