"""Blocks of the transcript for the session's own events: models and their limits, trouble, start and end."""

from agent_workbench.core.events import (
    ApprovalChanged,
    EndpointChosen,
    EndpointPassed,
    GrammarIgnored,
    ModeChanged,
    ModelObserved,
    ModelSwitched,
    RetryAsked,
    SessionEvent,
    SessionForked,
    SessionLeft,
    SessionResumed,
    TaskRouted,
    TroubleMet,
)
from agent_workbench.core.model import ChoiceReason, Purpose
from agent_workbench.core.rules.matching import RULE_SCOPE_LABELS, rule_words
from agent_workbench.core.rules.modes import mode_label
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Tone

FOLDED_LINES = 8


def session_blocks(event: SessionEvent) -> list[Block]:
    """Return the blocks of a session event; none if it has nothing to show."""
    match event:
        case TroubleMet():
            said = Block(sanitize(event.what, limit_chars=4000), Tone.BAD, "Trouble", Tone.BAD, space_before=True)
            return [said, *([Block(sanitize(event.advice, limit_chars=4000), Tone.WARN)] if event.advice else [])]
        case RetryAsked():
            return [Block("retried", Tone.DIM)]
        case SessionForked():
            return [Block("a fork: its own work begins here", Tone.ACCENT, rule=True, space_before=True)]
        case SessionResumed():
            return [Block("the session was resumed", Tone.DIM, rule=True, space_before=True)]
        case SessionLeft():
            return [Block(sanitize_line(event.reason), Tone.DIM, "Session")]
        case ApprovalChanged():
            return [Block(_rule_changed(event), Tone.WARN, "Gate")]
        case ModeChanged():
            return _mode_blocks(event)
        case ModelObserved():
            return _met(event)
        case ModelSwitched():
            to = sanitize_line(event.model, 120) or "back to the model of the settings"
            return [Block(f"{to}; the prompt is read again", Tone.WARN, "Switched")]
        case EndpointChosen(choice=choice) if choice.reason is not ChoiceReason.ORDER or choice.fallback:
            asked = f"{sanitize_line(choice.endpoint, 120)}: {sanitize_line(choice.why)}"
            return [Block(asked, Tone.WARN if choice.paid else Tone.DIM, "Endpoint")]
        case EndpointPassed():
            passed = (
                f"{sanitize_line(event.endpoint, 120)} does not answer the {event.purpose}; the next endpoint is asked"
            )
            why = sanitize(event.reason, limit_chars=2000)
            return [Block(passed, Tone.WARN, "Skipped", Tone.WARN), *([Block(why, Tone.DIM)] if why else [])]
        case TaskRouted(decision=decision):
            given = f"{sanitize_line(decision.task, 120)} was given to {sanitize_line(decision.worker, 120)}"
            reasons = [Block(sanitize_line(each), Tone.DIM) for each in decision.reasons]
            return [Block(given, Tone.DIM, "Routed"), *reasons]
        case GrammarIgnored():
            ignored = f"{sanitize_line(event.endpoint, 120)} ignores the grammar: it is asked without one from now on"
            what = sanitize(event.what, limit_chars=2000)
            return [Block(ignored, Tone.WARN, "Grammar", Tone.WARN), *([Block(what, Tone.DIM)] if what else [])]
        case _:
            return []


def _rule_changed(event: ApprovalChanged) -> str:
    if event.rule is None:
        how = "approved automatically" if event.always else "for you to decide again"
        return f"from now on each {event.kind} is {how}"
    words = sanitize_line(rule_words(event.rule), 400)
    return f"rule for {RULE_SCOPE_LABELS[event.kept]}: {words}" if event.always else f"rule revoked: {words}"


def _mode_blocks(event: ModeChanged) -> list[Block]:
    head = Block(mode_label(event.mode), Tone.WARN, "Mode")
    if not event.approved:
        return [head]
    lines = "\n".join(sanitize_line(each, 300) for each in event.approved)
    before = f"the mode before approved {counted_text(len(event.approved), 'proposal')}:\n{lines}"
    return [head, Block(before, Tone.DIM, fold_lines=FOLDED_LINES)]


def _met(event: ModelObserved) -> list[Block]:
    facts = event.facts
    role = "" if event.purpose is Purpose.EXECUTOR else f"{event.purpose}: "
    told = (
        sanitize_line(facts.model, 120) or sanitize_line(facts.endpoint, 120),
        *((f"at {sanitize_line(facts.endpoint, 120)}",) if facts.model and facts.passed else ()),
        f"{facts.context_tokens:,} tokens" if facts.context_tokens else "context size unknown",
        *(("reasons before it answers",) if facts.thinks else ()),
        *(("answers are scripted",) if facts.scripted else ()),
    )
    missing = "\n".join(sanitize_line(each, 300) for each in facts.off)
    passed = "\n".join(sanitize_line(each, 300) for each in facts.passed)
    return [
        Block(role + ", ".join(told), Tone.DIM, "Model"),
        *([Block(missing, Tone.DIM, "Lacks", Tone.WARN)] if missing else []),
        *([Block(passed, Tone.DIM, "Skipped", Tone.WARN)] if passed else []),
    ]
