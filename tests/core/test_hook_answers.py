"""Answers of hooks and the documents they read, for any text: never an error, never an approval, always bounded."""

import json

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.hook_answers import (
    MAX_ANSWER_CHARS,
    MAX_REASON_CHARS,
    NO_REASON,
    HookAnswer,
    HookOutcome,
    HookVerdict,
    read_hook_answer,
)
from agent_workbench.core.hook_document import (
    MAX_DIFF_CHARS,
    MAX_ITEMS,
    MAX_TEXT_CHARS,
    bare_document,
    proposal_document,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.state.session_state import SessionState

WORDS = st.sampled_from(["allow", "approve", "refuse", "ask", "none", "", "deny", "REFUSE"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.just("decision"), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(max_size=200) | VALUES.map(json.dumps))
def test_any_output_is_read(output: str) -> None:
    answer = read_hook_answer(HookOutcome(output))
    assert answer.verdict in {HookVerdict.NONE, HookVerdict.ASK, HookVerdict.REFUSE}
    assert (answer.verdict is HookVerdict.NONE) == (not output.strip())
    assert len(answer.reason) <= MAX_REASON_CHARS
    assert all(each.isprintable() for each in answer.reason)
    if not answer.failed and answer.verdict is not HookVerdict.NONE:
        assert json.loads(output)["decision"] == answer.verdict


@given(st.sampled_from(["ask", "refuse"]), st.text(max_size=1000))
def test_a_failure_asks_whatever_was_printed(decision: str, why: str) -> None:
    printed = json.dumps({"decision": decision, "reason": why})
    assert read_hook_answer(HookOutcome(printed, failure=f"exit code 1{why}")).verdict is HookVerdict.ASK
    answer = read_hook_answer(HookOutcome(printed))
    assert answer.verdict.value == decision
    assert answer.reason


def test_an_answer_without_a_reason_has_one() -> None:
    assert read_hook_answer(HookOutcome('{"decision": "refuse"}\n')) == HookAnswer(HookVerdict.REFUSE, NO_REASON)
    assert read_hook_answer(HookOutcome(" " * (MAX_ANSWER_CHARS + 1))).failed, "more than is read may be anything"


def test_a_document_is_one_bounded_line_of_ascii_that_names_what_is_cut() -> None:
    proposal = DiffProposal(
        *(ProposalId("P-1"), "write_diff", "ü" * (MAX_TEXT_CHARS + 1), 1),
        diff="\u2028\n" * MAX_DIFF_CHARS,
        paths=tuple(f"{number}\x1b" for number in range(MAX_ITEMS + 1)),
        commands=("x" * MAX_TEXT_CHARS, "y"),
    )
    document = proposal_document(SessionState(), HookPoint.DIFF_PROPOSED, "a", proposal)
    assert document.text.isascii()
    assert document.text.count("\n") == 1
    read = json.loads(document.text)
    assert read["cut"] == ["proposal.text", "proposal.diff", "proposal.commands", "proposal.paths"]
    assert tuple(read["cut"]) == document.cut
    said = read["proposal"]
    assert (len(said["text"]), len(said["diff"]), len(said["paths"])) == (MAX_TEXT_CHARS, MAX_DIFF_CHARS, MAX_ITEMS)
    assert said["commands"] == ["x" * MAX_TEXT_CHARS, ""]
    assert said["reference"] is None, "what is too long to be shown cannot be decided"


@given(st.text(), st.text())
def test_a_document_about_a_file_is_one_line_whatever_its_name_is(name: str, reason: str) -> None:
    document = bare_document(HookPoint.TASK_FAILED, "a", "/repo", name, reason)
    assert document.text.count("\n") == 1
    assert json.loads(document.text)["reason"] == reason
