import pytest

from agent_workbench.core.text.commit_subjects import (
    SUBJECT_CHARS,
    CommitConvention,
    common_convention,
    subject_problem,
)

NONE, CONVENTIONAL, AREA, IMPERATIVE = (
    CommitConvention.NONE,
    CommitConvention.CONVENTIONAL,
    CommitConvention.AREA,
    CommitConvention.IMPERATIVE,
)


@pytest.mark.parametrize(
    ("subjects", "convention"),
    [
        (["feat: a", "fix(x)!: b", "chore(deps, dev): c", "wip", "more"], CONVENTIONAL),
        (["feat: a", "parser: b", "fix: c", "cmd/go: d", "some text"], AREA),
        (["net: ipv4: repair it", "docs, tests: say so", "gh-123: x", "Something", "Else"], AREA),
        (["Add x", "fix y", "Don't fail", "Initial commit", "wip again"], IMPERATIVE),
        (["Added x", "Fixes y", "Fixing z", "Initial commit", "wip"], NONE),
        (["Add x", "Fix y", "Fix z", "Remove a"], NONE),  # too few to judge by
        ([], NONE),
        (["", "feat:", "feat:x", "feat(): x", "feat (a): x", ": x"], NONE),
        (["fix: new"] * 10 + ["old"] * 10, CONVENTIONAL),
        (["fix: new"] * 9 + ["old"] * 11, NONE),
        (["old"] * 20 + ["fix: x"] * 100, NONE),  # only the newest count
    ],
)
def test_the_convention_is_what_half_of_the_newest_subjects_follow(
    subjects: list[str], convention: CommitConvention
) -> None:
    assert common_convention(subjects) is convention


HOSTILE = [
    "a" * 1_000_000,
    "feat(" * 100_000,
    "x/" * 200_000 + ": y",
    "\x1b]52;c;eA==\x07: x",
    "\u202efix: x",
    "\ud800: x",
]


def test_hostile_subjects_are_read_at_once_and_follow_nothing() -> None:
    assert common_convention(HOSTILE * 4) is NONE


@pytest.mark.parametrize(
    ("subject", "convention"),
    [
        ("fix(parser): accept an empty line", CONVENTIONAL),
        ("feat!: drop Python 3.10", CONVENTIONAL),
        ("core/text: read tabs", AREA),
        ("Accept an empty line", IMPERATIVE),
        ("transmogrify the rows", IMPERATIVE),
        ("Embed the font", IMPERATIVE),
        ("anything", NONE),
    ],
)
def test_subjects_that_follow_are_accepted(subject: str, convention: CommitConvention) -> None:
    assert subject_problem(subject, convention) == ""


@pytest.mark.parametrize("convention", CommitConvention)
@pytest.mark.parametrize(
    ("subject", "told"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("fix: " + "x" * SUBJECT_CHARS, "has 77 characters, and may have 72"),
        ("fix: a\nb", "one line of printable"),
        ("fix: a\x1b[31m", "one line of printable"),
        ("fix: a\u202eb", "one line of printable"),
        (" fix: a", "without spaces at its ends"),
    ],
)
def test_subjects_out_of_bounds_are_refused(subject: str, told: str, convention: CommitConvention) -> None:
    assert told in subject_problem(subject, convention)


@pytest.mark.parametrize(
    ("subject", "convention"),
    [
        ("Accept an empty line", CONVENTIONAL),
        ("parser: accept it", CONVENTIONAL),
        ("Accept an empty line", AREA),
        ("Accepted an empty line", IMPERATIVE),
        ("Fixing: it", IMPERATIVE),
        ("Accept", IMPERATIVE),
        ("[Agent] Complete it", IMPERATIVE),
    ],
)
def test_other_subjects_are_refused_with_the_form(subject: str, convention: CommitConvention) -> None:
    assert "this repository's form: " in subject_problem(subject, convention)
