"""Approval rules as list entries: offered ones with the past actions they would allow, and those in force."""

from collections import Counter
from collections.abc import Iterable

from agent_workbench.core.approval_rules import (
    MODE_RULES,
    RULE_SCOPE_LABELS,
    RuleScope,
    StoredRule,
    decided_by,
    is_wide,
    mode_label,
    rule_words,
)
from agent_workbench.core.history.past_actions import PastAction, PastActions, would_be_allowed
from agent_workbench.core.ids import session_suffix
from agent_workbench.core.proposals import KINDS, Verdict, is_person
from agent_workbench.core.proposed_action import UnattendedRule
from agent_workbench.core.settings import Approval, Permission, Rule
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import decisions_of
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Block, Entry, Tone

NEWEST_SHOWN = 4
SCOPE_EXPLANATIONS = {
    RuleScope.SESSION: "until the session ends",
    RuleScope.REPO: "in .agent.yml, for everybody who trusts it",
    RuleScope.USER: "in your own rules.yaml, for this repo",
    RuleScope.EVERYWHERE: "in your own rules.yaml, for every repo you work in",
}
VERDICTS = {
    Verdict.APPROVE: "approved",
    Verdict.REJECT: "REJECTED",
    Verdict.SKIP: "skipped",
    Verdict.ABORT: "aborted",
}
NO_RULES = "There is no rule. A at the gate makes one from the waiting proposal."


def offer_entries(rules: Iterable[Rule], chosen: int) -> tuple[Entry, ...]:
    """Return an entry for each offered rule; the chosen one is marked."""
    return tuple(
        Entry(str(number), (Block(_shown(rule), Tone.STRONG, "rule ●" if number == chosen else "     ○", Tone.DIM),))
        for number, rule in enumerate(rules)
    )


def scope_entry(kept: RuleScope) -> Entry:
    """Return the possible scopes of a rule; the chosen one is marked and explained."""
    places = "   ".join(f"{'●' if each is kept else '○'} {RULE_SCOPE_LABELS[each]}" for each in RuleScope)
    return Entry(
        "keeping", (Block(places, Tone.PLAIN, "for", space_before=True), Block(SCOPE_EXPLANATIONS[kept], Tone.DIM))
    )


def past_entry(rule: Rule, past: PastActions | None) -> Entry:
    """Return the past actions that the rule would have allowed: their number, and the newest few."""
    if past is None:
        return Entry("past", (Block("reading past sessions…", Tone.DIM, space_before=True),))
    passed = would_be_allowed(rule, past)
    refused = sum(each.verdict is Verdict.REJECT for each in passed)
    said = f"It would have allowed {_much(rule, past, len(passed))}"
    said += f"; you rejected {refused:,} of these." if refused else "."
    head = Block(said, Tone.WARN if refused else Tone.PLAIN, space_before=True)
    # Rejected actions say most about a rule.
    told = sorted(passed, key=lambda each: each.verdict is not Verdict.REJECT)[:NEWEST_SHOWN]
    return Entry("past", (head, *map(_past_block, told)))


def _much(rule: Rule, past: PastActions, passed: int) -> str:
    sessions = counted_text(past.sessions, "session")
    among = f"in {sessions}" if past.complete else f"in the newest {sessions}"
    if not past.actions:
        return f"nothing so far: no {KINDS[rule.kind].plural} were decided {among}"
    count = f"{passed:,}" if passed else "none"
    return f"{count} of {len(past.actions):,} past {KINDS[rule.kind].plural} {among}"


def rule_entries(state: SessionState) -> tuple[Entry, ...]:
    """Return the rules in force, with their scope and their uses in this session."""
    used = _uses(state)
    return tuple(
        Entry(
            f"{each.kept}:{number}",
            (
                Block(_shown(each.rule), Tone.STRONG, space_before=True),
                Block(f"{RULE_SCOPE_LABELS[each.kept]} · {_times(used[decided_by(each.rule)])}", Tone.DIM),
                *_hindrance(state, each),
            ),
        )
        for number, each in enumerate(state.rules)
    )


def approvals_line(state: SessionState) -> str:
    """Return the rules of the mode, and the approvals that apply if no rule matches."""
    if state.config is None:
        return ""
    mode = state.mode.mode
    opens = ", ".join(rule_words(rule) for rule in MODE_RULES[mode])
    approvals = state.config.approvals
    by_rule = {rule: [str(kind) for kind in Permission if approvals.of(kind) is rule] for rule in Approval}
    of_mode = f"Mode {mode_label(mode)}: {opens}. " if opens else ""
    return f"{of_mode}Without a rule: " + "; ".join(
        f"{rule} {', '.join(kinds)}" for rule, kinds in by_rule.items() if kinds
    )


def _hindrance(state: SessionState, kept: StoredRule) -> tuple[Block, ...]:
    config, kind = state.config, kept.rule.kind
    if config is None:
        return ()
    if config.approvals.of(kind) is Approval.DENY:
        return (Block(f"has no effect: approvals.{kind} is deny", Tone.WARN),)
    anywhere = kind is Permission.CHECK and kept.rule.any and kept.kept is RuleScope.EVERYWHERE
    if (KINDS[kind].unattended is UnattendedRule.SANDBOX or anywhere) and not config.sandbox.holds:
        return (Block("you are asked anyway: there is no sandbox", Tone.WARN),)
    return ()


def _uses(state: SessionState) -> Counter[str]:
    runs = state.runs
    return Counter(each.event.by for run in runs for each in decisions_of(run.history))


def _times(count: int) -> str:
    return {0: "not used in this session yet", 1: "used once in this session"}.get(count, f"used {count:,} times here")


def _past_block(action: PastAction) -> Block:
    proposal, verdict = action.proposal, action.verdict
    said = VERDICTS[verdict] if verdict is not None else ""
    by = "" if is_person(action.by) or verdict is not Verdict.APPROVE else " by policy"
    what = sanitize_line(proposal.subject(" "), 200)
    line = f"{session_suffix(action.session)}  step {proposal.step:<3} {said + by:<19} {what}"
    return Block(line, Tone.BAD if verdict is Verdict.REJECT else Tone.DIM, clips=True, folded="")


def _shown(rule: Rule) -> str:
    return sanitize_line(rule_words(rule), 600) + (" (wide)" if is_wide(rule) else "")
