import unicodedata

import pytest
from hypothesis import given

from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.events.log_lines import LINE_CHARS, detail, log_line
from agent_workbench.core.ids import CommitId, ProposalId, TaskId
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposal_kinds import (
    CheckProposal,
    CommandProposal,
    CommitProposal,
    DiffProposal,
    MergeProposal,
    ReadProposal,
    SummaryProposal,
)
from agent_workbench.core.proposals import Proposal, Verdict
from tests.strategies import events

P1 = ProposalId("P-1")


@given(events())
def test_every_event_has_one_harmless_line(event: e.Event) -> None:
    line = log_line(event)
    assert len(line) <= LINE_CHARS
    assert not any(unicodedata.category(each)[0] == "C" or each in "\u2028\u2029" for each in line)
    line.encode()


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (e.SessionResumed(), "session resumed"),
        (e.TroubleMet("model", "gone", "start it"), "trouble (model): gone - start it"),
        (e.ModelAnswered(3, "Thought: I\nlook", AnswerFigures(), ""), "step 3: I look"),
        # A reflexion is said once, by its own event.
        (e.ModelAnswered(3, "Reflexion: I was wrong", AnswerFigures(), ""), ""),
        (e.ModelAnswered(3, "Reflexion: no\nAction: x", AnswerFigures(), ""), "step 3: Reflexion: no Action: x"),
        (e.ReflexionNoted(3, "I was wrong"), "reflexion: I was wrong"),
        (e.ChatReplied(1, "so", cut=True), "reply (cut at the token limit): so"),
        (e.ChatReplied(1, "so", cut=True, looped=True), "reply (stopped: it repeated itself): so"),
        (e.ActionRejected(2, "no diff"), "step 2 was invalid: no diff"),
        (e.ActionDecided(P1, Verdict.REJECT, "user", "wrong file"), "reject by user: wrong file"),
        (e.ActionDecided(P1, Verdict.APPROVE, "policy:read=auto"), ""),
        (e.ActionFinished(P1, e.ActionResult.OK, "fine"), ""),
        (e.ActionFinished(P1, e.ActionResult.REFUSED, "no"), "refused: no"),
        (e.ActionStarted(P1), ""),
        (
            e.TestsFinished(CheckPurpose.FINAL, (CheckResult("a", 0, "", 1.0), CheckResult("b", 1, "", 1.0))),
            "final checks FAILED: b",
        ),
        (e.TestsFinished(CheckPurpose.BASELINE, ()), "baseline passed"),
        (
            e.TestsFinished(CheckPurpose.BASELINE, (), ("a.py", '" "'), ("b/",)),
            'baseline passed; put back a.py, " "; removed b/',
        ),
        (
            e.TaskCommitted(TaskId("T-1"), CommitId("0123456789ab"), "agent/T-1", "m"),
            "committed 0123456789 on agent/T-1",
        ),
        (e.TaskFinished(TaskId("T-1"), TaskStatus.DONE, "so"), "T-1 done: so"),
        (e.ModelInterrupted(2, "", e.InterruptCause.DIED, "busy"), "step 2: no answer: busy"),
        (e.ModelInterrupted(2, "Tho", e.InterruptCause.DIED, "gone"), "step 2: the answer was interrupted (died) gone"),
        (e.ContextFilled(3, Purpose.EXECUTOR, 90, 100), "the context is full: 90 tokens of 100"),
        (
            e.ContextFilled(3, Purpose.EXECUTOR, 9, 100, by=e.Author.USER),
            "the older steps become a summary, as the user asked",
        ),
        (e.SessionLeft("\x1b]52;c;aGk=\x07\u202etxt"), "session left: ␛]52;c;aGk=␇‹202E›txt"),
    ],
)
def test_what_is_said(event: e.Event, line: str) -> None:
    assert log_line(event) == line


def test_a_refusal_that_its_line_cuts_is_told_whole_below() -> None:
    assert detail(e.ActionRejected(2, "no diff")) == ""
    assert detail(e.ActionRejected(2, "no diff " * 40)) == "no diff " * 40


@pytest.mark.parametrize(
    ("proposal", "words"),
    [
        (DiffProposal(P1, "write_diff", "", 1, paths=("a", "b")), "diff of a, b"),
        (CheckProposal(P1, "checks", "", 1, commands=("x", "y")), "checks: x; y"),
        (
            CheckProposal(P1, "checks", "", 1, commands=("x",), purpose=CheckPurpose.BASELINE),
            "baseline: x",
        ),
        (CommandProposal(P1, "run_command", "ls", 1), "command ls"),
        (CommitProposal(P1, "commit", "Title\n\nmore", 1), "commit: Title"),
        (MergeProposal(P1, "merge", "", 1), "merge: "),
        (ReadProposal(P1, "grep", "{}", 1), "grep {}"),
        (SummaryProposal(P1, "compact", "all is well", 1), "summary: all is well"),
    ],
)
def test_a_proposal_in_a_few_words(proposal: Proposal, words: str) -> None:
    assert proposal.described == words


def test_a_message_of_line_ends_has_no_first_line() -> None:
    assert CommitProposal(P1, "commit", "\n", 1).described == "commit: "


def test_a_compaction_before_the_first_step_sums_up_nothing() -> None:
    assert log_line(e.ContextCompacted(0, "", e.Author.WORKBENCH, 9)) == (
        "code that has no room in the context was left out"
    )
    told = log_line(e.ContextCompacted(3, "all is well", e.Author.USER, 9))
    assert told == "older steps became a summary (by user): all is well"
