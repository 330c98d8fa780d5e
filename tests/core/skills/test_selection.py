"""Skills are filtered, ordered and taken whole within a budget."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.skills import (
    MOST_SKILLS,
    NAMED,
    OF_INTENT,
    PLAYBOOK_SKILL,
    SkillCandidate,
    SkillEntry,
    SkillHit,
    SkillOrigin,
    SkillQuery,
    check_named,
    choosable,
    find_candidates,
    fit_into,
    languages_in,
    languages_of,
    skills_of,
)
from agent_workbench.core.task_estimates import Intent


def entry(name: str, **facts: object) -> SkillEntry:
    return SkillEntry(name, f"How to {name}.", SkillOrigin.REPO, name, **facts)  # type: ignore[arg-type]  # for brevity


TDD = entry("tdd", domains=("testing", "implementation"), languages=("any",))
YAML = entry("yaml", domains=("validation", "config"), languages=("yaml",), patterns=("yaml", "*.yml", "ci/*.cfg"))
PLAIN = entry("plain")
BROKEN = entry("broken", usable=False, problems=("broken/SKILL.md:2: 'description' is missing",))
CONSULTANT = entry("review", domains=("testing",), role="consultant")
ALL = (BROKEN, CONSULTANT, PLAIN, TDD, YAML)


def names(*hits: SkillHit, query: SkillQuery) -> list[str]:
    return [each.entry.name for each in find_candidates(ALL, hits, query)]


def test_without_filters_and_words_every_usable_skill_without_a_role_fits() -> None:
    assert names(query=SkillQuery()) == ["plain", "tdd", "yaml"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (SkillQuery(domains=("Testing", "nothing")), ["tdd"]),
        (SkillQuery(domains=("nothing",)), []),
        (SkillQuery(domains=("validation", "testing", "implementation")), ["tdd", "yaml"]),
        (SkillQuery(domains=("validation", "config", "testing")), ["yaml", "tdd"]),
        (SkillQuery(languages=("python",)), ["plain", "tdd"]),
        (SkillQuery(languages=("YAML", "go")), ["plain", "tdd", "yaml"]),
        (SkillQuery(domains=("validation",), languages=("python",)), []),
        (SkillQuery(domains=("nothing",), named={"yaml": "named", "tdd": "named"}), ["yaml", "tdd"]),
    ],
)
def test_a_filter_needs_one_match_and_named_skills_pass_it(query: SkillQuery, expected: list[str]) -> None:
    assert names(query=query) == expected


def test_a_skill_that_comes_with_the_intent_is_not_called_named() -> None:
    task = Task(TaskId("T-1"), "Deploy it.", intent=Intent.INFRA, applicable_skills=("yaml",))
    entries = (YAML, entry(PLAYBOOK_SKILL))
    found = find_candidates(entries, (), SkillQuery(words=task.description, named=skills_of(task)))
    assert [(each.entry.name, each.reason) for each in found] == [("yaml", NAMED), (PLAYBOOK_SKILL, OF_INTENT)]
    both = replace(task, applicable_skills=(PLAYBOOK_SKILL,))
    assert skills_of(both) == {PLAYBOOK_SKILL: NAMED}


def test_words_order_and_a_weak_match_is_told() -> None:
    hits = (SkillHit("tdd", 9.0, ("test", "first")), SkillHit("yaml", 1.0, ("ci",)), SkillHit("review", 20.0))
    found = find_candidates(ALL, hits, SkillQuery(words="test first in ci"))
    assert [(each.entry.name, each.reason, each.weak) for each in found] == [
        ("tdd", "test, first", False),
        ("yaml", "ci", True),
    ]


def test_where_a_check_fails_a_bundled_skill_is_named_or_meant_by_a_file() -> None:
    """It would lead a small model away from the failure; a long text has two words of any skill."""
    bundled = replace(YAML, origin=SkillOrigin.PACKAGE, patterns=("yaml", "wrong field", "*.yml"))
    hits = (SkillHit("yaml", 9.0, ("yaml", "wrong field")), SkillHit("tdd", 8.0, ("test", "first")))
    query = SkillQuery(words="the yaml has a wrong field, test first")
    for each, weak in ((query, []), (replace(query, failing=True), ["yaml"]), (replace(query, paths=("a.yml",)), [])):
        found = find_candidates((bundled, TDD), hits, each)
        assert [candidate.entry.name for candidate in found if candidate.weak] == weak
    assert not find_candidates((bundled,), hits, replace(query, failing=True, paths=("a.yml",)))[0].weak


@pytest.mark.parametrize("path", ["deploy.yml", "a/b/deploy.yml", "ci/main.cfg"])
def test_a_pattern_with_a_star_is_a_glob_for_the_files_of_the_task(path: str) -> None:
    (found,) = find_candidates(ALL, (), SkillQuery(words="x", paths=("a.py", path)))
    assert found.entry is YAML
    assert found.reason.startswith(path)
    assert not find_candidates(ALL, (), SkillQuery(words="x", paths=("a.py", "other/main.cfg")))


def test_a_skill_that_does_not_fit_is_passed_over_whole_and_a_smaller_one_is_taken() -> None:
    candidates = [SkillCandidate(entry(name), NAMED) for name in ("small", "large", "tiny", "unread")]
    fitted = list(fit_into(candidates, {"small": 60, "large": 50, "tiny": 40}, 100))
    assert [(each.entry.name, why) for each, why in fitted] == [
        ("small", ""),
        ("large", "50 tokens do not fit into the 40 of 100 that are left"),
        ("tiny", ""),
        ("unread", "less relevant than others"),
    ]
    many = [SkillCandidate(entry(f"s{number}"), NAMED) for number in range(9)]
    taken = [each for each, why in fit_into(many, {each.entry.name: 1 for each in many}, 100) if not why]
    assert len(taken) == MOST_SKILLS


def test_a_name_that_is_unknown_or_broken_is_refused() -> None:
    check_named(ALL, ("yaml", "tdd"))
    with pytest.raises(ConfigError, match="there is no skill 'yml'; did you mean 'yaml'"):
        check_named(ALL, ("tdd", "yml"))
    with pytest.raises(ConfigError, match=r"'broken' cannot be used: broken/SKILL\.md:2:"):
        check_named(ALL, ("broken",))
    with pytest.raises(ConfigError, match="there is no skill 'review'"):
        check_named(choosable(ALL), ("review",))


def test_origins_are_called_in_json_what_its_reference_says() -> None:
    assert [*SkillOrigin] == ["repo", "user", "package"]


def test_languages_come_from_files_and_from_words() -> None:
    assert languages_of(("a.py", "src/**/*.pyi", "x.yml", "README", "b.unknown")) == ("python", "yaml")
    assert languages_in("Validate the YAML, and go on.") == ("yaml",)
