"""Consultations as views: the panel beside the diff, and the note on a review at the gate of a commit."""

from functools import lru_cache

from msgspec import Struct

from agent_workbench.core.checks.failure_tree import CodePlace
from agent_workbench.core.consult.findings import (
    Finding,
    ReviewCounts,
    Severity,
    counted_notes,
    findings_of,
    review_counts,
)
from agent_workbench.core.events import ConsultantAnswered, ConsultStatus
from agent_workbench.core.live import Consulting, SessionUpdate
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.consultation import Consultation
from agent_workbench.core.state.session_state import SessionState
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
    return AdviceView(f"{title}: {_summary(asked.skill, answered, findings)}", _entries(answered, findings))


def _summary(skill: str, answered: ConsultantAnswered, findings: tuple[Finding, ...]) -> str:
    if skill == REVIEW:
        return str(review_counts(answered.text, findings))
    notes = counted_notes(answered.text)
    return f"{notes} notes" if notes is not None else f"{answered.duration_ms / 1000:.1f} s"


def _entries(answered: ConsultantAnswered, findings: tuple[Finding, ...]) -> tuple[Entry, ...]:
    """Return an entry for each paragraph; one that begins a finding has its place and tone."""
    by_row = {finding.row: finding for finding in findings}
    entries: list[Entry] = []
    for start, lines in _paragraphs(answered.text.split("\n"), frozenset(by_row)):
        text, finding = sanitize("\n".join(lines)), by_row.get(start)
        place = CodePlace(finding.path, finding.line) if finding is not None and finding.path else None
        tone = TONES[finding.severity] if finding is not None else Tone.PLAIN
        entries.append(Entry(str(start), (Block(text, tone, space_before=bool(entries)),), place))
    by = f"{sanitize_line(answered.model, 60)}, {answered.duration_ms / 1000:.1f} s"
    return (*entries, Entry("by", (Block(by, Tone.DIM, space_before=True),)))


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


def review_notes(state: SessionState, proposal: Proposal) -> tuple[Block, ...]:
    """Return the number of findings in the newest review of what a commit holds; nothing if there was none."""
    run = state.run
    about = {proposal.id, run.tree if run is not None else ""}
    reviews = (each for each in reversed(state.consultations) if each.asked.skill == REVIEW)
    found = next((each for each in reviews if each.asked.about in about), None)
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
