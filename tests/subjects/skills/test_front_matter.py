"""Front matter is read leniently: only a skill without a description cannot be used, and all is told with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.errors import ConfigError
from agent_workbench.subjects.skills.front_matter_adapter import SkillHead, parse_skill


def test_all_of_the_format_is_understood() -> None:
    text = (
        "---\r\nname: fix-it\r\ndescription: >\r\n  How to\r\n  fix it.\r\nlicense: MIT\r\nmetadata:\r\n"
        "  domains: [tests]\r\n  languages: python, go\r\n  author: somebody\r\n  tokens: 12\r\n  role: consultant\r\n"
        "---\r\n# Fix\r\n---\r\nDone.\r\n"
    )
    parsed = parse_skill(text, "SKILL.md", "fix-it")
    assert parsed.head == SkillHead("How to fix it.", ("tests",), ("python", "go"), role="consultant", tokens=12)
    assert parsed.body == "# Fix\n---\nDone."
    assert parsed.problems == ()


@pytest.mark.slow(quick=13)
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "expected a line ---"),
        ("# Title\n", 1, "expected a line ---"),
        ("---\nname: a\n", 3, "ends the front matter"),
        ("---\n---\n", 2, "empty"),
        ("---\n- a\n---\n", 2, "expected keys"),
        ("---\nname: a\n---\n", 2, "'description' is missing"),
        ("---\nname: a\ndescription:\n---\n", 3, "found nothing"),
        ("---\nname: a\ndescription: ''\n---\n", 3, "found an empty one"),
        ("---\nname: a\ndescription: [c]\n---\n", 3, "expected a text"),
        ("---\nname: a\ndescription: 'b\n---\n", 3, "not YAML"),
        ("---\nname: a\n\tdescription: b\n---\n", 3, "not YAML"),
        (f"---\nname: a\ndescription: {'[' * 5000}\n---\n", 2, "not YAML"),
        (f"---\nname: a\ndescription: b\nx: {'y' * 20_000}\n---\n", 2, "the front matter has 20,026 characters"),
        ("---\nname: a\ndescription: \x07\n---\n", 2, "not YAML"),
    ],
)
def test_what_cannot_be_used_is_told_with_file_and_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_skill(text, "skills/a/SKILL.md", "a")
    assert str(caught.value).startswith(f"skills/a/SKILL.md:{line}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("---\ndescription: b\n---\n", 2, "'name' is missing; the folder's name is used"),
        ("---\nname: b\ndescription: c\n---\n", 2, "the name is 'b'; the folder's name 'a' is used"),
        ("---\nname: A b\ndescription: c\n---\n", 2, "the folder's name 'a' is used"),
        ("---\nname: [a]\ndescription: c\n---\n", 2, "name: expected a text"),
        ("---\nname: a\ndescription: b\ntools: c\n---\n", 4, "unknown key 'tools' is ignored"),
        ("---\nname: a\ndescription: b\nallowed-tools: Bash(*)\n---\n", 4, "grants nothing"),
        ("---\nname: a\nname: z\ndescription: b\n---\n", 3, "'name' stands there twice; the first one counts"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---\n", 3, "has 1,025 characters; the limit is 1,024"),
        ("---\nname: a\ndescription: b\nmetadata: c\n---\n", 4, "expected keys"),
        ("---\nname: a\ndescription: b\nmetadata:\n  domains: {c: d}\n---\n", 5, "metadata.domains"),
        ("---\nname: a\ndescription: b\nmetadata:\n  tokens: many\n---\n", 5, "metadata.tokens: expected a number"),
        ("---\nname: a\ndescription: Use it: always\n---\n", 3, "not YAML"),
    ],
)
def test_what_is_ignored_is_a_problem_and_the_skill_is_used(text: str, line: int, said: str) -> None:
    parsed = parse_skill(text, "skills/a/SKILL.md", "a")
    assert parsed.problems[0].startswith(f"skills/a/SKILL.md:{line}: ")
    assert said in parsed.problems[0]
    assert parsed.head.description


def test_a_description_without_quotes_is_read_whole() -> None:
    parsed = parse_skill("---\nname: a\ndescription: Use it: always, it's good\n---\nx", "SKILL.md", "a")
    assert parsed.head.description == "Use it: always, it's good"


def test_escapes_and_markers_of_chat_templates_become_plain_text() -> None:
    metadata = 'metadata: {domains: ["\\e[2J", "[INST]"]}'
    text = f'---\nname: a\ndescription: "\\e]52;c;x\\a <|im_start|>system"\n{metadata}\n---\n'
    head = parse_skill(text, "SKILL.md", "a").head
    assert "\x1b" not in head.description + "".join(head.domains)
    assert "<|" not in head.description
    assert "[INST]" not in head.domains


def test_aliases_are_not_expanded_and_lists_are_bounded() -> None:
    levels = "\n".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 40))
    text = f"---\nname: a\ndescription: b\nx0: &x0 lol\n{levels}\nmetadata: {{domains: *x39}}\n---\n"
    parsed = parse_skill(text, "SKILL.md", "a")
    assert parsed.head.domains == ()
    assert len(parsed.problems) == 10
    many = "---\nname: a\ndescription: b\nmetadata: {domains: [" + "a, " * 900 + "]}\n---\n"
    assert len(parse_skill(many, "SKILL.md", "a").head.domains) == 50


@given(st.text("-\nname: ad[]{}'\"&*!|>\t#\x00é", max_size=80) | st.text(max_size=40))
def test_whatever_stands_there_it_is_read_or_refused(head: str) -> None:
    assert outcome(f"---\nname: a\ndescription: b\n{head}\n---\nbody").startswith(("read", "SKILL.md:"))


def outcome(text: str) -> str:
    try:
        parse_skill(text, "SKILL.md", "a")
    except ConfigError as error:
        return str(error)
    return "read"
