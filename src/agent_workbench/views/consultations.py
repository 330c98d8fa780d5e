"""Consultations as views: the panel beside the diff, and the note on a review at the gate of a commit."""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.core.consult_findings import (
    Finding,
    ReviewCounts,
    Severity,
    counted_notes,
    findings_of,
    review_counts,
    shown_lines,
)
from agent_workbench.core.events import ConsultantAnswered, ConsultStatus
from agent_workbench.core.live import Consulting, SessionUpdate
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.work import Consultation
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Entry, Tone

REVIEW = "review"
TONES = {Severity.CRITICAL: Tone.BAD, Severity.WARNING: Tone.WARN, Severity.SUGGESTION: Tone.ACCENT}
MOST_STREAMED_CHARS = 20_000


class AdviceView(Struct, frozen=True):
    """Panel of the newest consultation; without a title there is none. `running`: its answer still arrives."""

    title: str = ""
    entries: tuple[Entry, ...] = ()
    unsettled: tuple[Entry, ...] = ()
    running: bool = False


def view_advice(update: SessionUpdate) -> AdviceView:
    """Return the panel: what arrives now, else the newest answer."""
    consulting = update.live.consulting
    if consulting is not None:
        return _arriving(consulting)
    found = update.state.consultations
    return _answered(found[-1]) if found else AdviceView()


def _arriving(consulting: Consulting) -> AdviceView:
    streaming = consulting.streaming
    text = sanitize(streaming.text[-MOST_STREAMED_CHARS:])
    told = f"{streaming.tokens} tokens" if streaming.tokens else "reading the question …"
    blocks = (Block(text), Block(told, Tone.DIM)) if text.strip() else (Block(told, Tone.DIM),)
    return AdviceView(f"{sanitize_line(consulting.skill, 40)} …", (), (Entry("arriving", blocks),), running=True)


@lru_cache(maxsize=4)
def _answered(consultation: Consultation) -> AdviceView:
    asked, answered = consultation.asked, consultation.answered
    title = sanitize_line(asked.skill, 40)
    if answered is None:
        return AdviceView(f"{title}: no answer", (Entry("none", (Block("it was interrupted", Tone.WARN),)),))
    if answered.status is not ConsultStatus.OK:
        reason = sanitize(answered.reason or answered.text, limit_chars=4_000)
        return AdviceView(f"{title}: no answer", (Entry("none", (Block(reason, Tone.BAD),)),))
    findings = findings_of(answered.text, asked.paths)
    summary = _summary(asked.skill, answered, findings)
    return AdviceView(f"{title}: {summary}", _entries(answered, findings, shown_lines(asked.contents)))


def _summary(skill: str, answered: ConsultantAnswered, findings: tuple[Finding, ...]) -> str:
    if skill == REVIEW:
        return str(review_counts(answered.text, findings))
    notes = counted_notes(answered.text)
    return f"{notes} notes" if notes is not None else f"{answered.duration_ms / 1000:.1f} s"


def _entries(
    answered: ConsultantAnswered, findings: tuple[Finding, ...], lines_of: Mapping[str, int]
) -> tuple[Entry, ...]:
    """Return an entry for each paragraph; one that begins a finding has its place and tone.

    A finding about a line that its file does not have says so, and leads nowhere.
    """
    by_row = {finding.row: finding for finding in findings}
    entries: list[Entry] = []
    for start, lines in _paragraphs(answered.text.split("\n"), frozenset(by_row)):
        text, finding = sanitize("\n".join(lines)), by_row.get(start)
        wrong = _wrong_place(finding, lines_of) if finding is not None else ""
        place = CodePlace(finding.path, finding.line) if finding is not None and finding.path and not wrong else None
        tone = TONES[finding.severity] if finding is not None else Tone.PLAIN
        marks = (Block(wrong, Tone.WARN, "!", Tone.WARN),) if wrong else ()
        entries.append(Entry(str(start), (Block(text, tone, space_before=bool(entries)), *marks), place))
    by = f"{sanitize_line(answered.model, 60)}, {answered.duration_ms / 1000:.1f} s"
    return (*entries, Entry("by", (Block(by, Tone.DIM, space_before=True),)))


def _wrong_place(finding: Finding, lines_of: Mapping[str, int]) -> str:
    lines = lines_of.get(finding.path)
    if lines is None or 0 < finding.line <= lines:
        return ""
    return f"there is no line {finding.line:,}: {sanitize_line(finding.path)} has {counted_text(lines, 'line')}"


def _paragraphs(lines: list[str], heads: frozenset[int]) -> list[tuple[int, list[str]]]:
    """Return the paragraphs with the number of their first line; each finding begins one."""
    found: list[tuple[int, list[str]]] = []
    ended = True
    for row, line in enumerate(lines):
        if not line.strip():
            ended = True
        elif ended or row in heads:
            found.append((row, [line]))
            ended = False
        else:
            found[-1][1].append(line)
    return found


def _review_of(state: SessionState, proposal: Proposal) -> Consultation | None:
    """Return the newest review of a proposal, or of what a commit holds."""
    run = state.run
    about = {proposal.id, run.tree if run is not None else ""}
    reviews = (each for each in reversed(state.consultations) if each.asked.skill == REVIEW)
    return next((each for each in reviews if each.asked.about in about), None)


def grave_findings(state: SessionState, proposal: Proposal) -> tuple[str, ...]:
    """Return a line for each finding of the newest review of a proposal that is more than a suggestion."""
    found = _review_of(state, proposal)
    if found is None or found.answered is None or found.answered.status is not ConsultStatus.OK:
        return ()
    findings = findings_of(found.answered.text, found.asked.paths)
    lines_of = shown_lines(found.asked.contents)
    grave = (each for each in findings if each.severity is not Severity.SUGGESTION and not _wrong_place(each, lines_of))
    return tuple(sanitize_line(each.text) for each in grave)


def review_notes(state: SessionState, proposal: Proposal) -> tuple[Block, ...]:
    """Return the number of findings in the newest review of what a commit holds; nothing if there was none."""
    found = _review_of(state, proposal)
    if found is None:
        return ()
    if found.answered is None or found.answered.status is not ConsultStatus.OK:
        why = sanitize_line(found.answered.reason, 300) if found.answered is not None else "it was interrupted"
        return (Block(f"The review has no answer: {why}", Tone.WARN, "!", Tone.WARN, space_before=True),)
    counts = review_counts(found.answered.text, findings_of(found.answered.text, found.asked.paths))
    tone = Tone.BAD if counts.critical else Tone.WARN if not counts.stated else Tone.DIM
    return (Block(f"Review: {_told(counts)}", tone, "!" if counts.critical else "", tone, space_before=True),)


def _told(counts: ReviewCounts) -> str:
    return f"{counts}" if counts.stated else f"{counts}; its answer does not end as it should"
