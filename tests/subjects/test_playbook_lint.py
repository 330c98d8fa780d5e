"""Findings of ansible-lint: 120 of them, hostile ones, and what is no list."""

import json
from pathlib import Path

import pytest

from agent_workbench.core.errors import ToolError
from agent_workbench.core.playbooks import REASONS, LintCategory, LintReport
from agent_workbench.subjects.playbooks_adapter import KEPT, read_findings

RECORDED = Path(__file__).with_name("ansible_lint.json")
"""What ansible-lint 26.10 printed for a playbook with 120 findings."""


def finding(rule: str, severity: object = "major", **more: object) -> dict[str, object]:
    return {"check_name": rule, "severity": severity, "description": "d", "categories": [], **more}


def test_the_most_severe_of_120_findings_are_kept() -> None:
    printed = RECORDED.read_text()
    assert len(json.loads(printed)) == 120
    report = read_findings(f"WARNING  before it\n{printed}")
    assert (len(report.findings), report.left_out) == (KEPT, 70)
    assert report.text.endswith("and 70 more")
    assert all(each.reason and each.path == "site.yml" and each.line for each in report.findings)
    ranks = [("major", "minor").index(each.severity) for each in report.findings]
    assert ranks == sorted(ranks)


def test_fifteen_rules_have_a_reason_and_all_categories_are_used() -> None:
    assert len(REASONS) == 15
    assert {category for category, _ in REASONS.values()} == set(LintCategory)
    (found,) = read_findings(json.dumps([finding("name[casing]")])).findings
    assert (found.category, found.reason) == REASONS["name"]


@pytest.mark.parametrize(
    ("tags", "category"),
    [
        (["idempotency"], LintCategory.IDEMPOTENCY),
        (["unpredictability", "formatting"], LintCategory.ERROR_HANDLING),
        (["formatting"], LintCategory.STANDARDS),
        ([], LintCategory.BEST_PRACTICES),
        ("no list", LintCategory.BEST_PRACTICES),
    ],
)
def test_other_rules_have_the_category_of_their_tags(tags: object, category: LintCategory) -> None:
    (found,) = read_findings(json.dumps([finding("unknown-rule", categories=tags)])).findings
    assert (found.category, found.reason) == (category, "d")


def test_hostile_findings_are_plain_and_short() -> None:
    hostile = [
        finding("\x1b]52;c;aGk=\x07[@click=app.approve]", severity=[], description="a\n" * 5_000, location="x"),
        {"location": {"path": "\x1b[2J" * 999, "lines": {"begin": True}, "positions": {"begin": {"line": -1}}}},
        7,
        None,
    ]
    report = read_findings(json.dumps(hostile))
    assert len(report.findings) == 2
    assert all(each.line == 0 and each.severity == "minor" for each in report.findings)
    assert "\x1b" not in report.text
    assert all(len(line) < 1_000 for line in report.text.split("\n"))


@pytest.mark.parametrize("output", ["", "no JSON", "{}", "[" * 100_000, "[1", "[1e999]", '["a", NaN]'])
def test_what_is_no_list_is_an_error(output: str) -> None:
    with pytest.raises(ToolError, match="ansible-lint printed no"):
        read_findings(output)


def test_nothing_found() -> None:
    assert read_findings("[]") == LintReport()
    assert LintReport().text == "ansible-lint finds nothing"
    assert LintReport(problem="it hangs").text == "ansible-lint gave no result: it hangs"
