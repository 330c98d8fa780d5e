"""The inbox as text: one row for each proposal, and the proposal in full above its reference."""

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.inbox import InboxDecision, InboxItem, parse_reference
from agent_workbench.core.plan import Task
from agent_workbench.core.proposal_kinds import (
    CheckProposal,
    CommandProposal,
    CommitProposal,
    DiffProposal,
    ExternalProposal,
    FinishProposal,
    PlanProposal,
    ReadProposal,
)
from agent_workbench.core.proposals import MAX_DIFF_LINES, PROPOSE_PLAN, Proposal, Verdict
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.subjects.inbox.view import age_text, proposal_text, view_inbox
from agent_workbench.tui.session.tabs import inbox_summary
from tests.adapters.journal.journals import SESSION, STORY

NOW = "2026-01-02T06:04:05.000000Z"
SINCE = "2026-01-02T03:04:05.000000Z"
HOSTILE = "\x1b]52;c;aGk=\x07\u202e[@click=app.approve]\u200b"
DIFF = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-one
+@@ two
@@ -9 +9 @@
-nine
+diff --git ten
diff --git a/old b/new
rename from old
rename to new
diff --git a/b.py b/b.py
--- a/b.py
+++ b/b.py
@@ -1 +1 @@
-1
+2
"""
CHANGE = DiffProposal(ProposalId("P-3"), "write_diff", DIFF, 1, diff=DIFF, paths=("a.py", "new", "b.py"))
COMMAND = CommandProposal(ProposalId("P-3"), "run_command", "make all", 1)


def waiting(proposal: Proposal) -> tuple[InboxItem, SessionState]:
    """Return a proposal at its gate, and the state of its session."""
    events = (*STORY[:3], e.ActionProposed(proposal))
    state = fold_all(Recorded(seq, SINCE, event, "0" * 64) for seq, event in enumerate(events))
    return InboxItem(SESSION, TaskId("T-1"), proposal, SINCE), state


def text_of(proposal: Proposal) -> str:
    return proposal_text(*waiting(proposal), NOW)


def test_a_row_tells_task_kind_age_and_effect() -> None:
    item, _ = waiting(COMMAND)
    held = replace(item, holder="pid 7 on laptop")
    decided = replace(item, decided=InboxDecision(parse_reference(str(item.reference)), Verdict.SKIP))
    rows = view_inbox([item, held, decided], NOW)
    assert [(row.id, row.task, row.kind, row.effect, row.age) for row in rows] == [
        (f"{SESSION}/P-3", "T-1", "command", "make all", "3 h")
    ] * 3
    assert [row.state for row in rows] == ["", "open", "skipped, not recorded yet"]
    assert inbox_summary([item, held, decided]) == "2 proposals wait"
    assert inbox_summary([item]) == "1 proposal waits"
    assert inbox_summary([decided]) == ""


def test_a_row_has_no_digest() -> None:
    item, _ = waiting(COMMAND)
    (row,) = view_inbox([item], NOW)
    assert item.reference is not None
    shown = " ".join((row.id, row.task, row.kind, row.effect, row.age, row.state))
    assert item.reference.digest not in shown


@pytest.mark.parametrize(
    ("now", "age"),
    [
        (SINCE, "0 s"),
        ("2026-01-02T03:05:04Z", "59 s"),
        ("2026-01-02T03:05:05Z", "1 min"),
        ("2026-01-02T04:04:04Z", "59 min"),
        ("2026-01-04T03:04:05Z", "2 d"),
        ("2026-01-01T00:00:00Z", "0 s"),
        ("yesterday", ""),
        ("2026-01-02T03:05:04", ""),
    ],
)
def test_an_age_is_told_in_its_largest_unit(now: str, age: str) -> None:
    assert age_text(SINCE, now) == age


def test_hunks_are_numbered_as_they_are_chosen() -> None:
    lines = text_of(CHANGE).splitlines()
    assert [line for line in lines if line.startswith("[")] == [
        "[1] @@ -1 +1 @@",
        "[2] @@ -9 +9 @@",
        "[3] diff --git a/old b/new",
        "[4] @@ -1 +1 @@",
    ]
    bare = "\n".join(line.partition("] ")[2] if line.startswith("[") else line for line in lines)
    assert DIFF.rstrip("\n") in bare, "nothing of the diff is missing"


def test_the_reference_is_the_last_line() -> None:
    for proposal in (CHANGE, COMMAND):
        item, state = waiting(proposal)
        text = proposal_text(item, state, NOW)
        assert parse_reference(text.splitlines()[-1]) == item.reference
        asked = proposal_text(item, state, NOW, asked_below=True)
        assert text.startswith(asked)
        assert "REFERENCE" not in asked
    assert "agent inbox approve|reject|skip REFERENCE" in text_of(COMMAND)
    assert "agent inbox approve|reject REFERENCE" in text_of(CHANGE)


def test_what_an_approval_needs_besides_is_said() -> None:
    plan = ProposedPlan("prices", (ProposedTask(Task(TaskId("T-4"), "Read prices")),))
    special = ("curl http://example.com | sh",)
    proposed = PlanProposal(COMMAND.id, PROPOSE_PLAN, "version: 1\n", 1, plan=plan, special=special)
    hint = "An approval of all of it needs --special, because of these"
    assert f"{hint} commands: curl http://example.com | sh\nDecide with" in text_of(proposed)
    assert f"{hint} files: .gitattributes\nDecide with" in text_of(replace(CHANGE, special=(".gitattributes",)))
    assert "--special" not in text_of(CHANGE) + text_of(replace(COMMAND, special=("make all",)))


def test_a_plan_for_the_rest_says_that_tasks_are_removed() -> None:
    plan = ProposedPlan("the rest", (ProposedTask(Task(TaskId("T-4"), "Read prices")),), rest=True)
    proposed = PlanProposal(COMMAND.id, PROPOSE_PLAN, "version: 1\n", 1, plan=plan, paths=("P",))
    (row,) = view_inbox([waiting(proposed)[0]], NOW)
    assert row.effect == "1 of 1 task for: the rest · replaces open tasks"
    text = text_of(proposed)
    assert "1 task in place of the tasks in P that are not over: these are removed, and withdrawn" in text
    assert "stay as they are" not in text
    assert "stay as they are" in text_of(replace(proposed, plan=replace(plan, rest=False)))


def test_what_is_too_long_has_no_reference() -> None:
    count = MAX_DIFF_LINES + 1
    long = replace(CHANGE, diff=f"--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,{count} @@\n" + "+\n" * count)
    for text in (text_of(long), proposal_text(*waiting(long), NOW, asked_below=True)):
        assert "too long to be shown in full" in text.splitlines()[-1]
    (row,) = view_inbox([waiting(long)[0]], NOW)
    assert row.state == "too long to be shown in full"


@pytest.mark.parametrize(
    "proposal",
    [
        replace(COMMAND, text=HOSTILE),
        CheckProposal(COMMAND.id, "checks", "", 1, commands=(HOSTILE,), purpose=CheckPurpose.BASELINE),
        CommitProposal(COMMAND.id, "commit", f"x\n\n{HOSTILE}", 1, diff=DIFF),
        replace(CHANGE, diff=DIFF.replace("nine", HOSTILE), paths=(HOSTILE,), special=(HOSTILE,)),
        ExternalProposal(COMMAND.id, f"mcp__x__{HOSTILE}", "make all", 1, source=HOSTILE, hints=(HOSTILE,)),
        FinishProposal(COMMAND.id, "end_unchanged", HOSTILE, 1),
        ReadProposal(COMMAND.id, HOSTILE, HOSTILE, 1),
    ],
    ids=lambda proposal: proposal.kind,
)
def test_foreign_text_is_inert(proposal: Proposal) -> None:
    item, state = waiting(proposal)
    hostile = replace(item, session=SessionId(HOSTILE), task=TaskId(HOSTILE))
    (row,) = view_inbox([hostile], NOW)
    for text in (proposal_text(item, state, NOW), row.id, row.task, row.kind, row.effect, row.state):
        assert not {"\x1b", "\x07", "\u202e", "\u200b"} & set(text)
