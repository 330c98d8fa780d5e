"""Trial of a policy on a recorded session: each proposal passes, is refused or parks, as it would unattended."""

import json

import pytest
from msgspec.structs import replace

from agent_workbench.cli.verbs.rules import trial_document, trial_text
from agent_workbench.core import events as e
from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.history.past_actions import PolicyTrial, TriedSession
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.settings import Approval, Approvals, Limits, Permission, Rule
from agent_workbench.engine.policy import tasks_of, try_session
from tests.fakes import runs

STORY = (*runs.up_to_done(), runs.approved(runs.merge())[0])
EVENTS = tuple(e.Recorded(seq, "", event) for seq, event in enumerate(STORY))
(TASK,) = tasks_of(EVENTS)
HOLDS = SandboxFacts("bwrap", holds=True, network=False)
OPEN = Approvals(diff=Approval.AUTO, check=Approval.AUTO, commit=Approval.AUTO)


def policy(approvals: Approvals, *rules: Rule, sandbox: SandboxFacts = HOLDS) -> e.SessionConfigured:
    own = tuple(StoredRule(rule, RuleScope.USER) for rule in rules)
    return e.SessionConfigured(approvals, Limits(), (), "", "", 10, 1.0, sandbox, headless=True, own_rules=own)


def fates(approvals: Approvals, *rules: Rule, task: Task = TASK) -> dict[Permission, set[str]]:
    found: dict[Permission, set[str]] = {}
    for each in try_session(EVENTS, policy(approvals, *rules), task):
        found.setdefault(each.proposal.kind, set()).add(each.fate)
    return found


def test_what_is_open_passes_and_a_merge_parks() -> None:
    found = fates(OPEN)
    assert found[Permission.DIFF] == found[Permission.CHECK] == found[Permission.COMMIT] == {"pass"}
    assert found[Permission.MERGE] == {"park"}


def test_what_a_person_approved_then_does_not_count() -> None:
    found = fates(Approvals())
    assert found[Permission.CHECK] == found[Permission.DIFF] == found[Permission.COMMIT] == {"park"}


def test_deny_refuses_and_a_rule_passes() -> None:
    named = Rule(Permission.CHECK, commands=TASK.accept_tests)
    found = fates(replace(Approvals(), diff=Approval.DENY), named)
    assert (found[Permission.DIFF], found[Permission.CHECK]) == ({"refuse"}, {"pass"})


@pytest.mark.parametrize("origin", [each for each in TaskOrigin if each is not TaskOrigin.LOCAL])
def test_the_same_proposals_of_a_task_from_elsewhere_park(origin: TaskOrigin) -> None:
    foreign = replace(TASK, origin=origin)
    assert fates(OPEN, task=foreign)[Permission.CHECK] == {"park"}
    tried = try_session(EVENTS, policy(OPEN), foreign)
    whys = {each.why for each in tried if each.proposal.kind is Permission.CHECK}
    assert whys == {f"the task is not your own ({origin}), and no rule names: {'; '.join(TASK.accept_tests)}"}


def test_the_text_counts_what_is_equal() -> None:
    tried = try_session(EVENTS, policy(OPEN), TASK)
    trial = PolicyTrial(TASK, HOLDS, tried[0], (TriedSession(runs.SESSION, (TASK.id,), tried),))
    lines = trial_text(trial).split("\n")
    assert f"tried on 1 recorded session of {TASK.id}:" in lines
    (merge,) = [line for line in lines if "park" in line and "merges always wait for a person" in line]
    assert merge.startswith("  park    merge")
    assert any("policy:check=auto" in line and "times)" in line for line in lines)
    passed = sum(each.fate == "pass" for each in tried)
    assert lines[-1] == f"{passed} pass, 0 refuse, 1 park"
    document = json.loads(json.dumps(trial_document(trial)))
    assert [each["fate"] for each in document["sessions"][0]["proposals"]] == [each.fate for each in tried]


def test_without_recordings_it_says_so() -> None:
    bare = PolicyTrial(TASK, replace(HOLDS, holds=False, why="none is installed"), None)
    assert trial_text(bare).split("\n")[1:] == [
        "no sandbox holds: none is installed",
        "",
        "no session is recorded that the policy could be tried on",
    ]
