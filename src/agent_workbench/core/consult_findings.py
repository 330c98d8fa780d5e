"""Findings in a consultant's answer: its bounded text, their severity and place, and the counts of its last line."""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

MAX_FINDINGS = 200
MAX_TITLE_CHARS = 200
MAX_COUNT = 9_999
# In capitals as the discipline asks for, or in any case as a label; signs of any kind may stand before it.
_HEAD = re.compile(
    r"[\W\d_]*(?i:severity\W+)?"
    r"(CRITICAL\b|WARNING\b|SUGGESTION\b|(?i:critical|warning|suggestion)(?=[*_\]` ]*[:—–]))[\s*_\]`:.–—-]*(.*)"
)
_PLACE = re.compile(r"(?<![\w./@+-])(?P<path>[\w./@+-]*[\w@+-])[`*]*(?::|,? lines? |#L)(?P<line>\d{1,7})")
# No line of a file or of a diff begins so: those of files have their number first, and diffs are indented.
_SHOWN = re.compile(r"^### (?P<path>.+) \((?P<lines>\d{1,3}(?:,\d{3}){0,4}) lines", re.MULTILINE)
_COUNTS = re.compile(r"(\d{1,4}) critical, (\d{1,4}) warnings?, (\d{1,4}) suggestions?", re.IGNORECASE)
_CLEAN = re.compile(r"clean\s*[—–-]+\s*no issues found", re.IGNORECASE)
_NUMBERED = (
    re.compile(r"(\d{1,4}) learnings? worth writing to brain", re.IGNORECASE),
    re.compile(r"(\d{1,4}) candidates? found", re.IGNORECASE),
    re.compile(r"(\d{1,4}) entr(?:y|ies) (?:ready for brain_write|passed quality gate)", re.IGNORECASE),
)
_NONE = re.compile(r"no novel learnings in this session", re.IGNORECASE)

MAX_ANSWER_CHARS = 100_000
_OPEN, _FENCE = "```json", "```"
_NAMES = ('"status"', '"phase"')


class Severity(StrEnum):
    """Severity of a finding, gravest first."""

    CRITICAL = "critical"
    WARNING = "warning"
    SUGGESTION = "suggestion"


class Finding(Struct, frozen=True):
    """One finding: its severity, its text, and the line that it names (path empty: none of the judged files).

    `row` is its line in the answer, from 0.
    """

    severity: Severity
    text: str
    path: str = ""
    line: int = 0
    row: int = 0

    @property
    def place(self) -> str:
        """Path and line, empty if it names none."""
        return f"{self.path}:{self.line}" if self.path else ""


class ReviewCounts(Struct, frozen=True):
    """Numbers of findings. `stated`: the answer's last line has the form that was asked for."""

    critical: int = 0
    warnings: int = 0
    suggestions: int = 0
    stated: bool = False

    def __str__(self) -> str:
        if not (self.critical or self.warnings or self.suggestions):
            return "no findings" if self.stated else "no findings counted"
        return f"{self.critical} critical, {self.warnings} warnings, {self.suggestions} suggestions"


def findings_of(text: str, paths: Iterable[str]) -> tuple[Finding, ...]:
    """Return the findings of a review in their order; only the judged `paths` count as places.

    Of more than `MAX_FINDINGS` the gravest are kept.
    """
    known = tuple(paths)
    lines = text.split("\n")
    found: list[Finding] = []
    for row, line in enumerate(lines):
        head = _HEAD.match(line[:2_000])
        if head is None:
            continue
        path, number = _place(" ".join(lines[row : row + 3])[:2_000], known)
        title = " ".join(head[2].split())[:MAX_TITLE_CHARS]
        found.append(Finding(Severity(head[1].lower()), title, path, number, row))
    gravest = sorted(found, key=lambda each: list(Severity).index(each.severity))[:MAX_FINDINGS]
    return tuple(sorted(gravest, key=lambda each: each.row))


def _place(text: str, known: tuple[str, ...]) -> tuple[str, int]:
    for match in _PLACE.finditer(text):
        said = match["path"].removeprefix("./")
        ends = [path for path in known if path == said or path.endswith(f"/{said}")]
        if len(ends) == 1 or said in known:
            return (said if said in known else ends[0]), int(match["line"])
    return "", 0


def shown_lines(contents: str) -> dict[str, int]:
    """Return the number of lines of each judged file, as the headings of the files in a prompt tell it."""
    return {match["path"]: int(match["lines"].replace(",", "")) for match in _SHOWN.finditer(contents)}


def review_counts(text: str, findings: Iterable[Finding]) -> ReviewCounts:
    """Return the numbers of findings: those of the last line, and at least those that are listed.

    A last line that says less than the text before it is not believed.
    """
    last = last_line(text)
    said = _COUNTS.fullmatch(last)
    told = tuple(min(int(each), MAX_COUNT) for each in said.groups()) if said is not None else (0, 0, 0)
    listed = [each.severity for each in findings]
    critical, warnings, suggestions = (
        max(number, listed.count(severity)) for number, severity in zip(told, Severity, strict=True)
    )
    stated = said is not None or _CLEAN.fullmatch(last.rstrip(".")) is not None
    return ReviewCounts(critical, warnings, suggestions, stated)


def counted_notes(text: str) -> int | None:
    """Return the number in the last line of a retrospective or of the trainer, None if it has no such line."""
    last = last_line(text)
    if _NONE.match(last):
        return 0
    found = (pattern.match(last) for pattern in _NUMBERED)
    return next((int(match[1]) for match in found if match is not None), None)


def last_line(text: str) -> str:
    """Return the last line that is not blank, without emphasis."""
    lines = (line.strip(" \t\r*_`#>") for line in reversed(text.split("\n")[-50:]))
    return next(filter(None, lines), "")[:500]


def without_stray_json(text: str) -> str:
    """Return the text without a last block of JSON that reports a status and a phase, and without trailing blanks."""
    kept = text.rstrip()
    if not kept.endswith(_FENCE):
        return kept
    start = kept.rfind(_OPEN, 0, len(kept) - len(_FENCE))
    if start < 0 or not all(name in kept[start:] for name in _NAMES):
        return kept
    inside = kept[start + len(_OPEN) : -len(_FENCE)]
    return kept if _FENCE in inside else kept[:start].rstrip()


def bounded(text: str) -> tuple[str, int]:
    """Return at most `MAX_ANSWER_CHARS` characters of the text, and how many are left out."""
    return text[:MAX_ANSWER_CHARS], max(0, len(text) - MAX_ANSWER_CHARS)
