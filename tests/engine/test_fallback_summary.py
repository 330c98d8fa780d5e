"""What the workbench says of the steps itself, and where a piece of code is found again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.proposal_kinds import CheckProposal, DiffProposal, ReadProposal, SummaryProposal
from agent_workbench.core.proposals import Verdict
from agent_workbench.engine.compacted_context import locate_lines
from agent_workbench.engine.prompt.step_history import count_answers
from agent_workbench.engine.summary_request import fallback_summary

P1, P2, P9 = ProposalId("P-1"), ProposalId("P-2"), ProposalId("P-9")
READ = ReadProposal(P1, "read_file", '{"path": "a.py"}', 1)
DIFF = DiffProposal(P2, "write_diff", "--- a", 2, paths=("a.py", "b.py"))
COMPACT = SummaryProposal(P9, "compact", "short", 3)
BUILT = e.PromptBuilt(1, Purpose.EXECUTOR, 1, 1, "sha")


def answer(step: int, text: str = "Thought: hm") -> e.ModelAnswered:
    return e.ModelAnswered(step, text, AnswerFigures(), "")


FIRST: tuple[e.Event, ...] = (
    BUILT,
    answer(1),
    e.ActionProposed(READ),
    e.ActionDecided(P1, Verdict.APPROVE, "policy:read=auto"),
    e.ActionStarted(P1),
    e.ActionFinished(P1, e.ActionResult.OK, "a.py, lines 1 to 2 of 2:\none\ntwo"),
    BUILT,
    answer(2),
    e.ActionProposed(DIFF),
    e.ActionDecided(P2, Verdict.REJECT, "user", "not that file"),
    BUILT,
    answer(3),
    e.ActionRejected(3, "no line `Action: <tool>`"),
    BUILT,
    e.ModelInterrupted(4, "Thought: on", e.InterruptCause.LENGTH),
)
COMPACTION: tuple[e.Event, ...] = (
    e.ContextFilled(5, Purpose.EXECUTOR, 9, 9),
    e.PromptBuilt(4, Purpose.SUMMARY, 1, 1, "sha"),
    answer(4, "Summary: short"),
    e.ActionProposed(COMPACT),
    e.ActionDecided(P9, Verdict.REJECT, "user", "too short"),
    e.ActionProposed(COMPACT),
    e.ActionDecided(P9, Verdict.APPROVE, "user"),
    e.ActionStarted(P9),
    e.ContextCompacted(4, "what was said", e.Author.MODEL, 20),
    e.ActionFinished(P9, e.ActionResult.OK, ""),
)


def recorded(*events: e.Event) -> tuple[e.Recorded, ...]:
    return tuple(e.Recorded(seq, "", event) for seq, event in enumerate(events))


def test_checks_are_told_with_how_they_ended() -> None:
    checks = CheckProposal(P1, "checks", "", 1, commands=("make test", "make lint"))
    results = (CheckResult("make test", 1, "F", 1.0), CheckResult("make lint", 0, "", 1.0))
    done = e.ActionFinished(P1, e.ActionResult.OK, "The final checks:\nChecks failed.")
    ran = (e.ActionProposed(checks), e.ActionStarted(P1), e.TestsFinished(CheckPurpose.FINAL, results), done)
    assert fallback_summary(recorded(*ran), 2_000) == "- final checks FAILED: make test"
    lost = (*ran[:2], e.ActionFinished(P1, e.ActionResult.UNKNOWN, "nobody knows"))
    assert fallback_summary(recorded(*ran, *lost), 2_000).splitlines()[1:] == ["- checks: unknown: nobody knows"]


def test_each_step_has_its_line() -> None:
    assert fallback_summary(recorded(*FIRST), 2_000).splitlines() == [
        '- read_file {"path": "a.py"}: ok: a.py, lines 1 to 2 of 2:',
        "- write_diff a.py, b.py: rejected by user: not that file",
        "- step 3 was not taken: no line `Action: <tool>`",
        "- step 4: the answer was too long",
    ]


def test_a_compaction_is_no_step_and_its_summary_goes_before() -> None:
    again = (BUILT, answer(5), e.ActionProposed(READ), e.ActionFinished(P1, e.ActionResult.REFUSED, "no such file"))
    assert fallback_summary(recorded(*FIRST, *COMPACTION), 2_000) == "what was said"
    assert fallback_summary(recorded(*FIRST, *COMPACTION, *again), 2_000).splitlines() == [
        "what was said",
        '- read_file {"path": "a.py"}: refused: no such file',
    ]


def test_where_there_is_no_room_the_oldest_steps_are_left_out() -> None:
    shortened = fallback_summary(recorded(*FIRST), 120).splitlines()
    assert shortened[0] == "… 2 earlier steps are left out …"
    assert shortened[1:] == ["- step 3 was not taken: no line `Action: <tool>`", "- step 4: the answer was too long"]


def test_answers_are_counted_whatever_a_compaction_took_away() -> None:
    told = recorded(*FIRST, *COMPACTION, BUILT, answer(5))
    assert count_answers(told, Purpose.EXECUTOR) == 4, "five, of which the user rejected one"
    assert count_answers(told, Purpose.SUMMARY) == 1


FILE = [f"line {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("wanted", "lines", "was_at", "found"),
    [
        (FILE[3:6], FILE, 3, (3, 6)),
        (FILE[3:6], ["new", *FILE], 3, (4, 7)),
        (["x"], ["x", "y", "x", "x"], 2, (2, 3)),
        (["x"], ["x", "y", "y", "x"], 1, (0, 1)),
        (FILE[3:8], [*FILE[:5], "changed", *FILE[6:]], 3, (3, 8)),
        (FILE[3:8], [*FILE[:5], "more", "and more", *FILE[5:]], 3, (3, 10)),
        (FILE[3:8], [*FILE[:4], *FILE[6:]], 3, (3, 6)),
        (["a", "b"], ["quite", "another", "file"], 1, (1, 3)),
        (["a", "b"], ["short"], 5, (1, 1)),
        (["", "b"], ["", "", "c"], 1, (1, 3)),
    ],
    ids=[
        "there",
        "moved",
        "nearest",
        "nearest before",
        "changed",
        "longer",
        "shorter",
        "gone",
        "past the end",
        "blank",
    ],
)
def test_code_is_found_where_it_is_now(
    wanted: list[str], lines: list[str], was_at: int, found: tuple[int, int]
) -> None:
    assert locate_lines(wanted, lines, was_at) == found


LINES = st.lists(st.sampled_from(["", "a", "b", "c", "  d"]), min_size=1, max_size=12)


@given(LINES, LINES, st.integers(0, 15))
def test_what_is_found_lies_in_the_file(wanted: Sequence[str], lines: Sequence[str], was_at: int) -> None:
    first, last = locate_lines(list(wanted), list(lines), was_at)
    assert 0 <= first <= last <= len(lines)
    assert last - first <= max(2 * len(wanted), len(wanted))
