"""Policy: decisions without a person from settings, rules and hooks, and its trial on recorded sessions."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.approval_rules import (
    RuleScope,
    StoredRule,
    decided_by,
    decided_in,
    is_foreign,
    own_commands,
    rule_allows,
    rule_problem,
)
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import (
    HookAnswered,
    HookStarted,
    Recorded,
    SessionConfigured,
    TaskStarted,
)
from agent_workbench.core.fold import fold
from agent_workbench.core.history.past_actions import TriedProposal
from agent_workbench.core.hook_answers import (
    INTERRUPTED,
    NOT_ALL_SEEN,
    HookAnswer,
    HookOutcome,
    HookRun,
    HookVerdict,
    read_hook_answer,
)
from agent_workbench.core.hook_document import HookDocument, proposal_document
from agent_workbench.core.knowledge import PUT_ASIDE
from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import END_UNCHANGED, POLICY, Proposal, Verdict
from agent_workbench.core.proposed_action import UnattendedRule
from agent_workbench.core.settings import Approval, Permission, Rule
from agent_workbench.core.state.applied_diffs import checks_reviewed, checks_trusted, lacks_test
from agent_workbench.core.state.proposal_hooks import began, describe_objection, objections, point_of
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.task_estimates import Intent
from agent_workbench.core.tools.spec import REMEMBER
from agent_workbench.engine.runtime.session_context import SessionContext

UNATTENDED = "policy:unattended"
TRUSTED = "policy:check=trusted"
NOBODY = "nobody is there to approve it"
NOBODY_ANSWERS = "nobody is there to answer a server's question"


class PolicyDecision(Struct, frozen=True):
    """A decision made without a person."""

    verdict: Verdict
    by: str
    reason: str = ""


def ruling(state: SessionState, proposal: Proposal) -> PolicyDecision | None:
    """Return the decision of policy and rules about a proposal, None if the user must be asked."""
    if state.config is None:
        return None
    approval = state.config.approvals.of(proposal.kind)
    if proposal.unattended is UnattendedRule.WORKBENCH:
        return _summary_ruling(state, approval, proposal)
    if approval is Approval.DENY:
        by = f"policy:{proposal.kind}={approval}"
        return PolicyDecision(Verdict.REJECT, by, f"the policy does not allow this ({proposal.kind}: deny)")
    for run in objections(state, proposal):
        return _hook_ruling(state, proposal, run)
    if proposal.is_question:
        return PolicyDecision(Verdict.REJECT, UNATTENDED, NOBODY_ANSWERS) if state.config.headless else None
    if _ends_research(state, proposal):
        return PolicyDecision(Verdict.APPROVE, f"{POLICY}intent={Intent.RESEARCH}")
    by = _opened_by(state, approval, proposal)
    if not by and _is_put_aside(state, proposal):
        return PolicyDecision(Verdict.REJECT, UNATTENDED, PUT_ASIDE)
    if proposal.kind is Permission.COMMIT and _is_doubtful(state):
        return None
    if proposal.unattended is UnattendedRule.PARKED or not by:
        return PolicyDecision(Verdict.REJECT, UNATTENDED, NOBODY) if _is_lone_chat(state) else None
    refusal = _needs_a_person(state, proposal)
    if refusal and _is_put_aside(state, proposal):
        return PolicyDecision(Verdict.REJECT, UNATTENDED, PUT_ASIDE)
    if refusal and state.config.headless and not _has_edits(state):
        return PolicyDecision(Verdict.REJECT, UNATTENDED, refusal)
    return None if refusal else PolicyDecision(Verdict.APPROVE, by)


def _hook_ruling(state: SessionState, proposal: Proposal, run: HookRun) -> PolicyDecision | None:
    """Return the decision after the objection of a hook: it refused, or it wants a person."""
    refused = run.answer is not None and run.answer.verdict is HookVerdict.REFUSE
    if refused or _is_lone_chat(state):
        return PolicyDecision(Verdict.REJECT, f"{POLICY}hook={run.hook}", describe_objection(run))
    return PolicyDecision(Verdict.REJECT, UNATTENDED, PUT_ASIDE) if _is_put_aside(state, proposal) else None


def parking_reason(state: SessionState, proposal: Proposal) -> str:
    """Return why a proposal waits for a person, where `ruling` decides nothing about it."""
    if against := objections(state, proposal):
        return "; ".join(map(describe_objection, against))
    if proposal.unattended is UnattendedRule.PARKED:
        return f"{proposal.plural} always wait for a person"
    task = state.run.definition if state.run is not None else None
    if task is not None and is_foreign(task) and proposal.runs_commands:
        subject = "; ".join(_own_commands(state, _unnamed(state, proposal))) or proposal.tool
        return f"the task is not your own ({task.origin}), and no rule names: {subject}"
    approval = state.config.approvals.of(proposal.kind) if state.config is not None else Approval.ASK
    if proposal.kind is Permission.COMMIT and state.run is not None and lacks_test(state.run):
        return "the task asks for a test, its checks passed before it too, and no test is changed"
    return _needs_a_person(state, proposal) or f"{proposal.kind}: {approval}, and no rule allows it"


def _is_doubtful(state: SessionState) -> bool:
    """Return True for a commit that only a person may approve.

    Its task asks for a test and has none, or tests fail that failed before it. An unattended task goes on with these.
    """
    run, headless = state.run, state.config is not None and state.config.headless
    return run is not None and (lacks_test(run) or (bool(run.old_failures) and not headless))


def _has_edits(state: SessionState) -> bool:
    """Return True for a task that names its own change: refused, it could do nothing else, so it waits instead."""
    return state.run is not None and bool(state.run.definition.edits)


def _ends_research(state: SessionState, proposal: Proposal) -> bool:
    """Return True for the end of an unattended task that could change nothing: there is nothing to decide."""
    headless = state.config is not None and state.config.headless
    return (
        headless and proposal.tool == END_UNCHANGED and state.run is not None and state.run.definition.changes_nothing
    )


def _is_put_aside(state: SessionState, proposal: Proposal) -> bool:
    """Return True for a note of an unattended task, which needs no answer to go on."""
    return proposal.tool == REMEMBER and not state.in_chat and state.config is not None and state.config.headless


def _is_lone_chat(state: SessionState) -> bool:
    """Return True for a chat in which nobody can be asked; a task is parked there, a chat goes on without the call."""
    return state.in_chat and state.config is not None and state.config.headless


def _summary_ruling(state: SessionState, approval: Approval, proposal: Proposal) -> PolicyDecision | None:
    """Return the decision about a summary, which a full context cannot do without.

    `deny` means that the model is not asked for one, and the workbench's own is used. A summary of the scratchpad is
    optional: only the user, a rule or `auto` approves it.
    """
    if approval is Approval.DENY:
        return PolicyDecision(Verdict.APPROVE, f"policy:{Permission.SUMMARY}={approval}")
    if state.run is not None and state.run.notes_full:
        by = _opened_by(state, approval, proposal)
        return PolicyDecision(Verdict.APPROVE, by) if by else None
    if by := _opened_by(state, approval, proposal):
        return PolicyDecision(Verdict.APPROVE, by)
    return PolicyDecision(Verdict.APPROVE, "policy:unattended") if state.config and state.config.headless else None


def _opened_by(state: SessionState, approval: Approval, proposal: Proposal) -> str:
    """Return the setting, rule or mode that approves the proposal, as the `by` of the decision, empty if none does."""
    task = state.run.definition if state.run is not None else None
    if is_foreign(task) and proposal.runs_commands:
        return _named_by(state, approval, proposal)
    return _generally_opened_by(state, approval, proposal)


def _named_by(state: SessionState, approval: Approval, proposal: Proposal) -> str:
    """Return what approves a command of a task that is not the user's own: rules that name it, and nothing else.

    The tests and lint of the settings are the user's commands, whoever wrote the task.
    """
    if proposal.kind is not Permission.CHECK:
        return _by_rule(state, proposal, named=True)
    if approval is Approval.ONCE and _asked_before(state, proposal):
        return f"policy:{proposal.kind}={approval}"
    unnamed = _unnamed(state, proposal)
    if _own_commands(state, unnamed):
        return ""
    by = _generally_opened_by(state, approval, unnamed) if unnamed.commands else ""
    if unnamed.commands and not by:
        return ""
    here = tuple(line for line in proposal.commands if line not in unnamed.commands)
    return decided_by(Rule(proposal.kind, commands=here)) if here else by


def _own_commands(state: SessionState, proposal: Proposal) -> tuple[str, ...]:
    config = state.config
    return own_commands(proposal, (config.test_command, config.lint_command) if config is not None else ())


def _unnamed(state: SessionState, proposal: Proposal) -> Proposal:
    """Return the proposal with those of its commands that no rule names."""
    valid = (each.rule for each in state.rules if each.rule.kind is proposal.kind and not rule_problem(each.rule))
    named = {line for rule in valid for line in rule.commands}
    return replace(proposal, commands=tuple(line for line in proposal.commands if line not in named))


def _generally_opened_by(state: SessionState, approval: Approval, proposal: Proposal) -> str:
    if approval is Approval.AUTO or (approval is Approval.ONCE and _asked_before(state, proposal)):
        return f"policy:{proposal.kind}={approval}"
    if approval is Approval.ONCE and proposal.kind is Permission.CHECK and checks_trusted(state, proposal.commands):
        return TRUSTED
    if by := _by_rule(state, proposal):
        return by
    of_mode = state.mode.rules_for(proposal)
    opened = any(rule_allows(each.rule, proposal) and _counts_here(state, each) for each in of_mode)
    return decided_in(state.mode.mode) if opened else ""


def _by_rule(state: SessionState, proposal: Proposal, *, named: bool = False) -> str:
    """Return the rule that approves the proposal, empty if none does; `named`: only one that names the very call."""
    rules = (each.rule for each in state.rules if rule_allows(each.rule, proposal) and _counts_here(state, each))
    return next((decided_by(each) for each in rules if not named or each.commands or each.tool), "")


def _asked_before(state: SessionState, proposal: Proposal) -> bool:
    """Return True for the checks after a diff if the user approved these commands and each diff of the task."""
    after_change = proposal.purpose in {CheckPurpose.AFTER_DIFF, CheckPurpose.FINAL}
    return after_change and state.run is not None and checks_reviewed(state.run, proposal.commands)


def _counts_here(state: SessionState, kept: StoredRule) -> bool:
    """Return True if a rule is in force here: a rule for all repos does not run any checks without a sandbox."""
    everywhere = kept.kept is RuleScope.EVERYWHERE and kept.rule.kind is Permission.CHECK and kept.rule.any
    return not everywhere or (state.config is not None and state.config.sandbox.holds)


def _needs_a_person(state: SessionState, proposal: Proposal) -> str:
    """Return the reason why only a person may approve the proposal, empty if there is none."""
    if proposal.needs_person:
        return proposal.needs_person
    if proposal.unattended is UnattendedRule.SANDBOX and not (state.config and state.config.sandbox.holds):
        return f"{proposal.plural} need a person's approval where there is no sandbox"
    return ""


async def run_hook(session: SessionContext, proposal: Proposal, name: str) -> None:
    """Run a hook about a proposal and record its answer. One that was started before is not run again: it asks."""
    point = point_of(proposal)
    if point is None:
        return
    if began(session.state, proposal, name, point):
        answer, seconds = HookAnswer(HookVerdict.ASK, INTERRUPTED, failed=True), 0.0
    else:
        document = proposal_document(session.state, point, name, proposal)
        session.publisher.show_activity(f"hook {name} looks at {proposal.id}")
        await session.record(HookStarted(name, point, proposal.id))
        outcome = await session.ports.hooks.run(name, point, document.text, document.workspace)
        answer, seconds = _answer(document, outcome), outcome.seconds
    await session.record(
        HookAnswered(name, point, answer.verdict, proposal.id, answer.reason, round(seconds, 3), answer.failed)
    )


def _answer(document: HookDocument, outcome: HookOutcome) -> HookAnswer:
    answer = read_hook_answer(outcome)
    if document.cut and answer.verdict is HookVerdict.NONE:
        return HookAnswer(HookVerdict.ASK, NOT_ALL_SEEN, failed=True)
    return answer


def try_proposal(state: SessionState, proposal: Proposal, policy: SessionConfigured, task: Task) -> TriedProposal:
    """Return the decision about a proposal in this state under another policy, if it were of `task`.

    What a person approved in the recording does not count: an unattended task has nobody.
    """
    configured = fold(state, Recorded(state.seq + 1, state.time, policy))
    run = configured.run
    if run is not None:
        definition = replace(run.definition, origin=task.origin)
        configured = replace(configured, main=replace(run, definition=definition, approved_checks=()))
    found = ruling(configured, proposal)
    if found is None:
        return TriedProposal(proposal, None, parking_reason(configured, proposal))
    return TriedProposal(proposal, found.verdict, found.reason or found.by)


def is_passed(state: SessionState, policy: SessionConfigured) -> bool:
    """Return True if a policy decides what waits in a session, whatever it decides; nothing waits: False."""
    configured = fold(state, Recorded(state.seq + 1, state.time, policy))
    return configured.waiting is not None and ruling(configured, configured.waiting) is not None


def try_session(events: Iterable[Recorded], policy: SessionConfigured, task: Task) -> tuple[TriedProposal, ...]:
    """Return the decisions about the proposals of a session's tasks; if it worked on `task`, of that one alone."""
    tried: list[tuple[TaskRun, TriedProposal]] = []
    state = SessionState()
    shown: Proposal | None = None
    for recorded in events:
        state = fold(state, recorded)
        if state.waiting is not None and state.waiting is not shown and state.run is not None:
            shown = state.waiting
            tried.append((state.run, try_proposal(state, shown, policy, task)))
    own = [each for run, each in tried if run.task == task.id]
    return tuple(own or (each for _, each in tried))


def tasks_of(events: Iterable[Recorded]) -> tuple[Task, ...]:
    """Return the tasks that a session worked on, as they were defined then."""
    return tuple(each.event.definition for each in events if isinstance(each.event, TaskStarted))
