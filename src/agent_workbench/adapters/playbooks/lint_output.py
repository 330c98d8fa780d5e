"""Reading of the JSON that ansible-lint prints."""

import re
from collections.abc import Mapping

from agent_workbench.core.errors import ToolError
from agent_workbench.core.playbooks.lint import REASONS, LintCategory, LintFinding, LintReport
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json

MANY, KEPT = 100, 50
"""Of more than `MANY` findings the first `KEPT` are kept, by severity."""
_TEXT_CHARS, _PATH_CHARS = 200, 200
_SEVERITIES = ("blocker", "critical", "major", "minor", "info")
_RULE = re.compile(r"[a-z][a-z0-9-]{0,60}")
_OF_TAG: tuple[tuple[str, LintCategory], ...] = (
    ("idempotency", LintCategory.IDEMPOTENCY),
    ("unpredictability", LintCategory.ERROR_HANDLING),
    ("core", LintCategory.ERROR_HANDLING),
    ("performance", LintCategory.PERFORMANCE),
    ("formatting", LintCategory.STANDARDS),
    ("metadata", LintCategory.STANDARDS),
)


def read_findings(output: str) -> LintReport:
    """Return the findings in the JSON that ansible-lint printed; raise `ToolError` if it is not such a list."""
    start = output.find("[")
    try:
        listed = read_bounded_json(output[start:].strip()) if start >= 0 else None
    except JsonError as error:
        raise ToolError(f"ansible-lint printed no JSON: {error}") from error
    if not isinstance(listed, list):
        raise ToolError("ansible-lint printed no list of findings", advice="its output is in the log of the run")
    found = sorted((_finding(each) for each in listed if isinstance(each, dict)), key=_order)
    kept = found[:KEPT] if len(found) > MANY else found
    return LintReport(tuple(kept), len(found) - len(kept))


def _order(finding: LintFinding) -> tuple[int, str, int, str]:
    return _SEVERITIES.index(finding.severity), finding.path, finding.line, finding.rule


def _finding(said: Mapping[str, JsonValue]) -> LintFinding:
    rule = _text(said.get("check_name"), 80) or "unknown"
    named = _RULE.match(rule)
    described = _text(said.get("description")) or "no description"
    tags = said.get("categories")
    category, reason = REASONS.get(named[0] if named else "", (_by_tags(tags), described))
    location = said.get("location")
    place = location if isinstance(location, dict) else {}
    severity = _text(said.get("severity"), 20)
    known = severity if severity in _SEVERITIES else "minor"
    return LintFinding(rule, _text(place.get("path"), _PATH_CHARS), _line(place), known, category, described, reason)


def _by_tags(tags: JsonValue) -> LintCategory:
    said = tags if isinstance(tags, list) else []
    return next((category for tag, category in _OF_TAG if tag in said), LintCategory.BEST_PRACTICES)


def _line(place: Mapping[str, JsonValue]) -> int:
    """Return the line of a finding: under `lines` or `positions`, as a number or as an object. 0 if it has none."""
    for name in ("lines", "positions"):
        within = place.get(name)
        begin = within.get("begin") if isinstance(within, dict) else None
        line = begin.get("line") if isinstance(begin, dict) else begin
        if isinstance(line, int) and not isinstance(line, bool) and 0 <= line < 10_000_000:
            return line
    return 0


def _text(said: JsonValue, most: int = _TEXT_CHARS) -> str:
    return sanitize_line(said, most) if isinstance(said, str) else ""
