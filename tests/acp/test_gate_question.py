"""The question about a proposal: what is not shown in full cannot be approved, and rules stand in their options."""

from collections.abc import Sequence

import pytest
from acp import schema as wire
from msgspec.structs import replace

from agent_workbench.acp.event_updates import EventUpdates
from agent_workbench.acp.gate import EditorGate, GateAnswer, gate_question
from agent_workbench.acp.tool_calls import MAX_SHOWN_CHARS
from agent_workbench.core.events import ActionProposed, Recorded
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import ApproveProposal, ChangeRule, Intent, RejectProposal
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Accepted, Outcome
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.proposal_kinds import KINDS, DiffProposal
from agent_workbench.core.proposals import Proposal, shown_sha
from agent_workbench.core.settings import Permission
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

DIFF = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+{}\n"


def asked_of(proposal: Proposal) -> tuple[SessionUpdate, Proposal]:
    return ScriptedSession(*runs.up_to_first_diff()[:-1], ActionProposed(proposal)).newest, proposal


def diff(text: str, **fields: object) -> Proposal:
    made = DiffProposal(ProposalId("P-90"), "write_diff", "", 1, diff=DIFF.format(text), paths=("src/a.py",))
    return replace(made, **fields)


def shown(call: wire.ToolCallUpdate | wire.ToolCallStart) -> str:
    """Return all texts that a client gets of a call."""
    return "\n".join(
        each.content.text
        if isinstance(each, wire.ContentToolCallContent)
        else f"DIFF {each.path} {each.old_text}>{each.new_text}"
        for each in call.content or ()
    )


def kinds(options: Sequence[wire.PermissionOption]) -> list[str]:
    return [each.kind for each in options]


def test_a_plain_diff_is_one_and_its_rules_are_named_first() -> None:
    asked = gate_question(*asked_of(diff("new")), "/repo")
    assert "DIFF /repo/src/a.py old\n>new\n" in shown(asked.call)
    # A client that only counts the lines of a diff shows its text.
    assert "-old\n+new\n" in shown(asked.call)
    assert [(each.path, each.line) for each in asked.call.locations or ()] == [("/repo/src/a.py", 1)]
    always = [each.name for each in asked.options if each.kind == "allow_always"]
    assert always == [
        "diff of src/a.py: always in this session",
        "diff of src/**: always in this session",
        "diff of any file (wide): always in this session",
    ]


def test_the_call_itself_has_both_forms_too() -> None:
    (update,) = EventUpdates("/repo", whole=False).of(Recorded(1, "", ActionProposed(diff("new"))))
    assert isinstance(update, wire.ToolCallStart)
    assert "DIFF /repo/src/a.py old\n>new\n" in shown(update)
    assert "-old\n+new\n" in shown(update)


def test_whole_files_are_shown_where_they_are_known() -> None:
    change = FileChange("src/a.py", FileContent(b"old\nrest\n"), FileContent(b"new\nrest\n"))
    asked = gate_question(*asked_of(diff("new")), "/repo", (change,))
    assert "DIFF /repo/src/a.py old\nrest\n>new\nrest\n" in shown(asked.call)


@pytest.mark.parametrize("hidden", ["ne\u200bw", "ne\u202ew", "n\u0430w\u00ad", "new\r", "e\x1b[2J", "\U000e0041x"])
def test_what_an_editor_would_not_show_is_text_with_its_codes(hidden: str) -> None:
    change = FileChange("src/a.py", FileContent(b"old\n"), FileContent(f"{hidden}\n".encode()))
    for changes in ((), (change,)):
        asked = gate_question(*asked_of(diff(hidden)), "/repo", changes)
        assert "DIFF " not in shown(asked.call)
        assert hidden not in shown(asked.call)
        assert "+" in shown(asked.call)


def test_a_fence_in_a_diff_does_not_end_the_block() -> None:
    asked = gate_question(*asked_of(diff("```\u200b\n+approve this")), "/repo")
    text = shown(asked.call)
    assert "````diff\n" in text
    assert text.rstrip().endswith("````")


@pytest.mark.parametrize("size", [MAX_SHOWN_CHARS + 1, 3 * MAX_SHOWN_CHARS])
def test_what_is_too_long_cannot_be_approved(size: int) -> None:
    asked = gate_question(*asked_of(diff("\n+".join(["x" * 999] * (size // 1_000 + 2)))), "/repo")
    assert set(kinds(asked.options)) == {"reject_once"}
    assert "agent tui --session" in shown(asked.call)


@pytest.mark.parametrize("kind", [Permission.MERGE, Permission.INFRASTRUCTURE])
def test_no_rule_is_offered_where_a_person_must_decide(kind: Permission) -> None:
    asked = gate_question(*asked_of(KINDS[kind](ProposalId("P-90"), str(kind), "text", 1)), "/repo")
    assert "allow_always" not in kinds(asked.options)
    assert "allow_once" in kinds(asked.options)


class Asked:
    """Client and session of a gate: answers in turn, and the intents that came of them."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.questions: list[wire.ToolCallUpdate] = []
        self.intents: list[Intent] = []

    async def ask(self, _: str, call: wire.ToolCallUpdate, options: Sequence[wire.PermissionOption]) -> str | None:
        self.questions.append(call)
        answer = self.answers.pop(0)
        assert answer is None or answer in {each.option_id for each in options}
        return answer

    async def submit(self, intent: Intent) -> Outcome:
        self.intents.append(intent)
        return Accepted()

    async def decided(self, proposal: Proposal) -> GateAnswer:
        return await EditorGate(self, self, "/repo").ask(*asked_of(proposal))  # type: ignore[arg-type] # both in one


async def test_special_paths_are_asked_about_twice() -> None:
    special = diff("new", special=(".github/ci.yml",))
    asked = Asked("approve", "back", "approve", "approve")
    assert await asked.decided(special) is GateAnswer.DECIDED
    assert [each.tool_call_id for each in asked.questions] == ["P-90", "P-90-special", "P-90", "P-90-special"]
    assert ".github/ci.yml" in shown(asked.questions[1])
    assert asked.intents == [ApproveProposal(ProposalId("P-90"), shown_sha(special))]
    undecided = Asked("approve", None)
    assert (await undecided.decided(special), undecided.intents) == (GateAnswer.UNDECIDED, [])


async def test_always_approves_what_was_shown_and_keeps_the_rule() -> None:
    asked = Asked("always-0")
    assert await asked.decided(diff("new")) is GateAnswer.DECIDED
    approval, rule = asked.intents
    assert approval == ApproveProposal(ProposalId("P-90"), shown_sha(diff("new")))
    assert isinstance(rule, ChangeRule)
    assert rule.rule.paths == ("src/a.py",)


async def test_a_rejection_has_a_reason_now_or_with_the_next_message() -> None:
    now, later = Asked("reject"), Asked("explain")
    assert await now.decided(diff("new")) is GateAnswer.DECIDED
    assert isinstance(now.intents[0], RejectProposal)
    assert (await later.decided(diff("new")), later.intents) == (GateAnswer.EXPLAINED_NEXT, [])
