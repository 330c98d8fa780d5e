"""Findings of a review, and the counts of last lines."""

import pytest

from agent_workbench.core.consult_findings import (
    MAX_FINDINGS,
    Severity,
    counted_notes,
    findings_of,
    review_counts,
    shown_lines,
)

PATHS = ("src/a.py", "src/deep/b.py")
REVIEW = """\
I read both files.

CRITICAL src/a.py:12 - the key is logged

- **WARNING** `b.py`, line 3: no test
### SUGGESTION: rename it
CRITICALLY speaking, this is fine.

1 critical, 1 warnings, 1 suggestions
"""


def test_findings_have_severity_and_place() -> None:
    found = findings_of(REVIEW, PATHS)
    assert [(each.severity, each.place) for each in found] == [
        (Severity.CRITICAL, "src/a.py:12"),
        (Severity.WARNING, "src/deep/b.py:3"),
        (Severity.SUGGESTION, ""),
    ]
    assert found[0].text.endswith("the key is logged")
    assert str(review_counts(REVIEW, found)) == "1 critical, 1 warnings, 1 suggestions"


@pytest.mark.parametrize("place", ["/etc/passwd:1", "../a.py:1", ".env:1", "c.py:3", "http://evil/x.py:80"])
def test_a_place_is_one_of_the_judged_files(place: str) -> None:
    (found,) = findings_of(f"CRITICAL {place} - look there", PATHS)
    assert found.place == ""


@pytest.mark.parametrize(
    ("text", "critical", "stated"),
    [
        ("Clean — no issues found", 0, True),
        ("**Clean - no issues found.**\n\n", 0, True),
        ("CRITICAL src/a.py:1 - x\n\nClean — no issues found", 1, True),
        ("CRITICAL src/a.py:1 - x\nCRITICAL src/a.py:2 - y\n\n0 critical, 0 warnings, 0 suggestions", 2, True),
        ("0 critical, 0 warnings, 0 suggestions\nCRITICAL src/a.py:1 - x", 1, False),
        ("3 critical, 0 warnings, 0 suggestions", 3, True),
        ("99999999999999999999999 critical, 0 warnings, 0 suggestions", 0, False),
        ("", 0, False),
    ],
)
def test_a_last_line_hides_no_finding(text: str, critical: int, stated: bool) -> None:
    counts = review_counts(text, findings_of(text, PATHS))
    assert (counts.critical, counts.stated) == (critical, stated)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("x\n3 learnings worth writing to brain", 3),
        ("No novel learnings in this session.", 0),
        ("4 candidates found (2 scoring ≥ 3)", 4),
        ("2 entries ready for brain_write", 2),
        ("0 entries passed quality gate — [all of this project]", 0),
        ("nothing", None),
    ],
)
def test_the_other_last_lines(text: str, number: int | None) -> None:
    assert counted_notes(text) == number


def test_many_findings_and_long_lines_are_bounded() -> None:
    text = "\n".join(f"CRITICAL {'a/' * 5_000}x.py:1" for _ in range(MAX_FINDINGS + 5))
    assert len(findings_of(text, PATHS)) == MAX_FINDINGS


def test_many_small_findings_hide_no_critical_one() -> None:
    text = "SUGGESTION: a\n" * MAX_FINDINGS + "CRITICAL src/a.py:1 b\n0 critical, 200 warnings, 200 suggestions"
    found = findings_of(text, PATHS)
    assert (found[-1].severity, len(found)) == (Severity.CRITICAL, MAX_FINDINGS)
    assert review_counts(text, found).critical == 1


@pytest.mark.parametrize(
    "line",
    ["Critical: a", "**Critical**: `a.py` b", "Severity: CRITICAL a", "\U0001f534 CRITICAL a", "| CRITICAL | a |"],
)
def test_a_critical_finding_in_another_form_counts_too(line: str) -> None:
    text = f"{line}\n\n0 critical, 0 warnings, 0 suggestions"
    assert review_counts(text, findings_of(text, PATHS)).critical == 1


@pytest.mark.parametrize(
    "line", ["Critical paths are fine.", "0 critical, 0 warnings, 0 suggestions", "Not critical: a"]
)
def test_the_word_alone_is_no_finding(line: str) -> None:
    assert findings_of(line, PATHS) == ()


@pytest.mark.parametrize("heading", ["### x (, lines", f"### x ({'9' * 5000} lines", "### x (1,2 lines"])
def test_a_heading_that_tells_no_number_is_passed_over(heading: str) -> None:
    assert shown_lines(f"### a.py (1,200 lines, 30 shown)\n{heading})\n### b.py (7 lines)") == {"a.py": 1200, "b.py": 7}
