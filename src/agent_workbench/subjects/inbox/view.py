"""The inbox: one row for each proposal that waits in any session, and a proposal as text."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from agent_workbench.core.events.codec import JsonObject
from agent_workbench.core.inbox import InboxItem, InboxReceipt
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.proposed_action import Risk
from agent_workbench.core.state.proposal_hooks import awaited_hook, describe_objection, objections
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole
from agent_workbench.views.blocks import Tone
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import DECIDABLE, acts_for
from agent_workbench.views.gate.proposal_views import describe

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
EFFECT_CHARS = 300
SOURCE_CHARS = 40


class InboxRow(Struct, frozen=True):
    """An item of the inbox: what kind of thing waits, what it would do, its risk, its age and its state.

    `source` tells where its task comes from, empty for a task of the plan. All texts can be shown as they are.
    """

    item: InboxItem
    id: str
    task: str
    kind: str
    effect: str
    age: str
    state: str
    tone: Tone
    risk: Risk
    risk_tone: Tone
    source: str


RISK_TONES = {Risk.HIGH: Tone.BAD, Risk.MEDIUM: Tone.WARN, Risk.LOW: Tone.DIM}


def view_inbox(items: Sequence[InboxItem], now: str) -> tuple[InboxRow, ...]:
    """Return a row for each item, in their order; `now` is UTC in ISO 8601, as journals write it."""
    return tuple(_row(item, now) for item in items)


def row_document(row: InboxRow) -> JsonObject:
    """Return an item of the inbox. It has no reference: a decision needs the whole proposal to be shown."""
    return {
        "id": row.id,
        "session": row.item.session,
        "proposal": row.item.proposal.id,
        "task": row.task,
        "kind": row.item.proposal.kind,
        "effect": row.effect,
        "since": row.item.since,
        "age": row.age,
        "risk": row.risk,
        "source": row.source,
        "expires": row.item.expires,
        "holder": row.item.holder,
        "decided": row.item.decided.verdict if row.item.decided is not None else "",
        "worker": row.item.worker,
        "refused": list(row.item.refused),
    }


def receipt_text(receipt: InboxReceipt) -> str:
    """Return the outcome of a decision as one line."""
    reference = receipt.decision.reference
    outcome = f"{receipt.decision.verdict.past} {reference.session}/{reference.proposal}"
    if receipt.recorded:
        return f"{outcome}; the session continues"
    if receipt.holder:
        return f"{outcome}; {receipt.holder} has the session open and has not recorded it yet"
    return f"{outcome}; it is recorded when the session is opened: by a worker, `agent run` or `agent tui`"


def proposal_text(item: InboxItem, state: SessionState, now: str, *, asked_below: bool = False) -> str:
    """Return everything that a decision about the item is bound to, in full, with hunks numbered from 1.

    `state` is that of the item's session. The last line is the reference, or says why there is none. Where the decision
    is `asked_below`, the reference and the command that takes it are left out.
    """
    row = _row(item, now)
    view = view_diff(SessionUpdate(state))
    state_text, source = f"  ({row.state})" if row.state else "", f"  from {row.source}" if row.source else ""
    head = f"{row.id}  {row.task}{source}  {row.kind}, {row.risk} risk, waits {row.age}{state_text}"
    notes = [f"\n{block.text}" if block.space_before else block.text for block in view.notes]
    text = sanitize_whole(view.diff, keep_returns=True)
    diff = ["", *(_numbered(text) if view.by_hunk else text.removesuffix("\n").split("\n"))] if text else []
    ending = () if asked_below and item.reference is not None else _ending(item, state)
    return "\n".join([head, *refused_lines(item), *_objections(item, state), "", *notes, *diff, "", *ending])


def _objections(item: InboxItem, state: SessionState) -> Iterator[str]:
    """Yield which hooks asked for a person, and why; nothing while one has not answered."""
    if not awaited_hook(state, item.proposal):
        yield from (sanitize_line(describe_objection(run), EFFECT_CHARS) for run in objections(state, item.proposal))


def _row(item: InboxItem, now: str) -> InboxRow:
    kind, what, more = describe(item.proposal)
    effect = sanitize_line(" · ".join(filter(None, (what, more))), EFFECT_CHARS)
    state, tone = _state(item, now)
    task, kind = sanitize_line(item.task), sanitize_line(kind)
    return InboxRow(
        item,
        sanitize_line(item.id),
        task,
        kind,
        effect,
        age_text(item.since, now),
        state,
        tone,
        item.risk,
        RISK_TONES[item.risk],
        sanitize_line(item.source, SOURCE_CHARS),
    )


def _state(item: InboxItem, now: str) -> tuple[str, Tone]:
    """Return the state of an item, with the machine that has its session if that is another one."""
    state, tone = _state_here(item, now)
    where = f"on {sanitize_line(item.worker, SOURCE_CHARS)}" if item.worker else ""
    return ", ".join(filter(None, (state, where))), tone


def _state_here(item: InboxItem, now: str) -> tuple[str, Tone]:
    if item.decided is not None:
        return f"{item.decided.verdict.past}, not recorded yet", Tone.DIM
    if item.expires:
        return _expiry(item, now), Tone.WARN
    if item.reference is None:
        return "too long to be shown in full", Tone.WARN
    return ("open", Tone.GOOD) if item.holder else ("", Tone.PLAIN)


def _expiry(item: InboxItem, now: str) -> str:
    left = age_text(now, item.expires) if now < item.expires else ""
    return f"rejected by itself {f'in {left}' if left else 'at the next look of a worker'}"


def item_remarks(item: InboxItem, now: str) -> tuple[str, ...]:
    """Return what the inbox knows of an item beside its proposal: a risk above the lowest, source and expiry."""
    risk = f"{item.risk} risk" if item.risk is not Risk.LOW else ""
    source = f"from {sanitize_line(item.source, SOURCE_CHARS)}" if item.source else ""
    where = f"on {sanitize_line(item.worker, SOURCE_CHARS)}" if item.worker else ""
    expiry = _expiry(item, now) if item.expires else ""
    return (*filter(None, (risk, source, where, expiry)), *refused_lines(item))


def refused_lines(item: InboxItem) -> tuple[str, ...]:
    """Return why decisions about the item do not count, a line for each."""
    return tuple(sanitize_line(why, EFFECT_CHARS) for why in item.refused)


def age_text(since: str, now: str) -> str:
    """Return the time between two UTC times in its largest unit, such as `3 h`; empty if one is no time."""
    try:
        seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
    except (ValueError, TypeError):
        return ""
    for unit, word in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds // unit:.0f} {word}"
    return f"{max(0, seconds):.0f} s"


def _numbered(diff: str) -> list[str]:
    """Return the lines of a diff with a number before each hunk, and before each file that has none."""
    lines = diff.removesuffix("\n").split("\n")
    starts: list[int] = []
    for place, line in enumerate(lines):
        if line.startswith("@@ ") and starts and lines[starts[-1]].startswith("diff --git "):
            starts[-1] = place
        elif line.startswith(("@@ ", "diff --git ")):
            starts.append(place)
    numbers = {place: number for number, place in enumerate(starts, 1)}
    return [f"[{numbers[place]}] {line}" if place in numbers else line for place, line in enumerate(lines)]


def _special_names(proposal: Proposal) -> str:
    return sanitize_line(", ".join(proposal.special), EFFECT_CHARS)


def _ending(item: InboxItem, state: SessionState) -> Iterator[str]:
    """Yield how the item is decided, its reference last."""
    if item.reference is None:
        yield "It is too long to be shown in full, so it has no reference: `agent tui` opens its session."
        return
    asked = state.run is not None and state.run.compaction_asked
    verbs = "|".join(act for act in acts_for(item.proposal, asked=asked) if act in DECIDABLE)
    proposal = item.proposal
    if proposal.second_look:
        what = "files" if proposal.plan is None else "commands"
        yield f"An approval of all of it needs --special, because of these {what}: {_special_names(proposal)}"
    yield f"Decide with `agent inbox {verbs} REFERENCE`:"
    yield str(item.reference)
