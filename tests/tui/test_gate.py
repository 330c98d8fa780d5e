"""What counts as a decision at the gate, and what does not."""

import json

import pytest
from msgspec.structs import replace
from textual import events
from textual.widgets import TextArea

from agent_workbench.core.approval_rules import RuleScope
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    ApprovalChanged,
    Author,
    ProposalReplaced,
    TroubleMet,
)
from agent_workbench.core.history.past_actions import PastAction, PastActions
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    ChangeRule,
    ChooseMergeMethod,
    EditProposal,
    ListPastActions,
    RejectProposal,
    RetryTrouble,
    SkipProposal,
    StartTask,
)
from agent_workbench.core.live import Live
from agent_workbench.core.outcomes import PastActionsFound
from agent_workbench.core.proposals import ANSWER_SERVER, Verdict, shown_sha
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.text.sanitizer import WHOLE_CHARS
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, driving

DIFF = runs.diff_step(30, runs.WRONG)[1]
SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
LONG = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,200 @@\n" + "".join(f"+line {number}\n" for number in range(200))
WIDE = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,2 @@\n+short\n+harmless = 1" + " " * 400 + "; import os\n"


def waiting() -> ScriptedSession:
    return ScriptedSession(*runs.up_to_first_diff())


HINTS = ("read-only", "safe")


def with_diff(diff: str) -> ScriptedSession:
    proposal = runs.proposed(Permission.DIFF, "write_diff", "P-90", diff, diff=diff, paths=("x.py",))
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal))


def with_command(line: str) -> ScriptedSession:
    proposal = runs.proposed(Permission.COMMAND, "run_command", "P-90", line)
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal))


def with_call(text: str) -> ScriptedSession:
    proposal = runs.proposed(
        Permission.EXTERNAL, "weather", "P-90", text, source="mcp:test", spec="0" * 16, hints=HINTS
    )
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal))


def with_check(line: str) -> ScriptedSession:
    proposal = replace(runs.checks("P-90", CheckPurpose.AFTER_DIFF), commands=(line,))
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal))


@SIZES
async def test_a_proposal_takes_the_focus_and_is_approved_by_one_key(size: tuple[int, int]) -> None:
    async with driving(waiting(), size) as bench:
        assert bench.gate.has_focus
        await bench.look()
        await bench.press("a")
        assert bench.session.intents == [ApproveProposal(DIFF.id, shown_sha(DIFF))]


async def test_an_approval_that_comes_too_early_is_ignored_and_said_so() -> None:
    async with driving(waiting()) as bench:
        bench.clock.advance(0.29)
        await bench.press("a")
        assert bench.session.intents == []
        assert "too quick" in bench.text()
        bench.clock.advance(0.3)
        await bench.press("a")
        assert len(bench.session.intents) == 1


async def test_a_key_that_waited_in_the_queue_counts_from_when_it_was_pressed() -> None:
    async with driving(waiting()) as bench:
        bench.clock.advance(1.0)
        typed_ahead = events.Key("a", "a")
        typed_ahead.time -= 5.0
        bench.app.post_message(typed_ahead)
        await bench.idle()
        assert bench.session.intents == []


async def test_the_next_proposal_has_to_be_looked_at_again() -> None:
    async with driving(waiting()) as bench:
        await bench.look()
        await bench.record(*runs.applied(DIFF)[1:], ActionProposed(runs.checks("P-40", CheckPurpose.AFTER_DIFF)))
        await bench.press("a")
        assert bench.session.intents == []


async def test_a_replaced_proposal_has_to_be_looked_at_again() -> None:
    async with driving(waiting()) as bench:
        await bench.look()
        other = runs.proposed(Permission.DIFF, "write_diff", DIFF.id, runs.RIGHT, diff=runs.RIGHT, edited=True)
        await bench.record(ProposalReplaced(other, "edited", Author.USER))
        await bench.press("a")
        assert bench.session.intents == []
        await bench.look()
        await bench.press("a")
        assert bench.session.intents == [ApproveProposal(DIFF.id, shown_sha(other))]


async def test_a_paste_never_approves() -> None:
    async with driving(waiting()) as bench:
        await bench.look()
        bench.app.post_message(events.Paste("aaay\r\na"))
        await bench.idle()
        assert bench.session.intents == []


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize("pane", ["1", "2", "3", "4", "5"])
async def test_nothing_is_approved_when_the_focus_is_elsewhere(pane: str) -> None:
    async with driving(waiting()) as bench:
        await bench.look()
        await bench.press(pane, "a")
        assert bench.session.intents == []
        await bench.press("0")
        await bench.press("a")
        assert len(bench.session.intents) == 1


async def test_what_appears_behind_a_dialogue_counts_as_shown_only_after_it() -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        await bench.press("?")
        await bench.record(*runs.up_to_first_diff()[4:])
        await bench.look()
        await bench.press("escape")
        await bench.press("a")
        assert bench.session.intents == []
        await bench.look()
        await bench.press("a")
        assert len(bench.session.intents) == 1


@pytest.mark.parametrize("lines", [1, 2, 3])
async def test_a_notice_leaves_the_lines_of_what_waits_uncovered(lines: int) -> None:
    async with driving(with_diff(LONG), SMALL) as bench:
        before = bench.text().splitlines()[:-4]
        bench.app.notify("\n".join(["the plan was read again"] * lines), timeout=1000)
        await bench.until(lambda: "read again" in bench.text())
        assert bench.text().splitlines()[:-4] == before


async def test_what_a_notice_covers_is_not_seen_and_the_key_that_shows_more_takes_the_notice_away() -> None:
    wide = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,200 @@\n" + "".join(f"+{'line ' * 12}\n" for _ in range(12))
    session = with_diff(wide)
    waiting = session.newest
    session.newest = ScriptedSession(*runs.opening(), *runs.started()).newest
    async with driving(session, SMALL) as bench:
        bench.app.notify("\n".join("a notice" for _ in range(9)), timeout=1000)
        await bench.idle()
        session.newest = waiting
        await bench.record()
        await bench.look()
        covered = bench.diff.unseen
        assert 0 < covered < 12
        await bench.press("a")
        assert bench.session.intents == []
        await bench.until(lambda: bool(bench.text()) and not bench.diff.unseen)
        await bench.look()
        await bench.press("a")
        assert len(bench.session.intents) == 1


@pytest.mark.slow(quick=1)
@SIZES
async def test_the_first_key_shows_more_of_a_long_diff_until_all_was_seen(size: tuple[int, int]) -> None:
    async with driving(with_diff(LONG), size) as bench:
        await bench.look()
        assert "lines not shown yet" in bench.text()
        unseen = bench.diff.unseen
        pages = 0
        while bench.diff.unseen:
            await bench.press("a")
            assert bench.diff.unseen < unseen
            assert bench.session.intents == []
            unseen = bench.diff.unseen
            pages += 1
            await bench.look()
        assert pages >= 3
        await bench.press("a")
        assert len(bench.session.intents) == 1


async def test_holding_the_key_down_pages_but_does_not_approve() -> None:
    async with driving(with_diff(LONG)) as bench:
        await bench.look()
        await bench.press(*["a"] * 30)
        assert bench.session.intents == []


async def test_going_to_the_end_does_not_count_as_seeing_the_middle() -> None:
    async with driving(with_diff(LONG)) as bench:
        await bench.look()
        await bench.press("G")
        assert bench.diff.unseen > 100


async def test_what_stands_behind_the_edge_has_to_be_seen_too() -> None:
    session = ScriptedSession(*runs.opening())
    async with driving(session, LARGE) as bench:
        await bench.press("3", "w")
        session.newest = with_diff(WIDE).newest
        await bench.record()
        await bench.look()
        assert "import os" not in bench.text()
        assert bench.diff.unseen == 1
        await bench.press("a")
        assert bench.session.intents == []
        assert "import os" in bench.text()
        await bench.look()
        await bench.press("a")
        assert len(bench.session.intents) == 1


async def test_long_lines_are_wrapped_at_first_so_that_nothing_hides_behind_the_edge() -> None:
    async with driving(with_diff(WIDE), LARGE) as bench:
        assert "import os" in bench.text()
        assert bench.diff.unseen == 0


@pytest.mark.slow(quick=1)
@SIZES
async def test_a_line_longer_than_the_pane_is_approved_when_its_end_was_on_screen(size: tuple[int, int]) -> None:
    endless = "x = '" + "harmless " * 4_800 + "'; import os"
    diff = f"--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,2 @@\n+short\n+{endless}\n"
    async with driving(with_diff(diff), size) as bench:
        await bench.look()
        assert bench.diff.unseen == 1
        pages = 0
        while bench.diff.unseen:
            assert "import os" not in bench.text()
            await bench.press("a")
            assert bench.session.intents == []
            await bench.look()
            pages += 1
        assert "import os" in bench.text()
        assert pages > 5
        await bench.press("a")
        assert len(bench.session.intents) == 1


async def test_the_end_of_a_long_line_alone_is_not_the_line() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1 @@\n+" + "harmless " * 6_000 + "\n"
    async with driving(with_diff(diff)) as bench:
        await bench.press("G")
        await bench.look()
        assert bench.diff.unseen == 1
        await bench.press("a")
        assert bench.session.intents == []


@pytest.mark.slow
async def test_what_is_too_long_to_be_shown_cannot_be_approved() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1 @@\n+" + "x" * WHOLE_CHARS + "x\n"
    for waits in (with_diff(diff), with_command("echo " + "x" * WHOLE_CHARS), with_check("echo " + "x" * WHOLE_CHARS)):
        async with driving(waits, LARGE) as bench:
            await bench.look()
            assert "too long to be shown in full" in bench.text()
            await bench.press("a")
            assert bench.session.intents == []


@pytest.mark.slow
async def test_a_long_command_is_shown_to_its_end() -> None:
    long = "echo " + "harmless " * 2_400 + "; dangerous"
    for waits in (with_command(long), with_check(long)):
        async with driving(waits, LARGE) as bench:
            await bench.look()
            while bench.diff.unseen:
                assert "dangerous" not in bench.text()
                await bench.press("a")
                await bench.look()
            assert "dangerous" in bench.text()
            await bench.press("a")
            assert len(bench.session.intents) == 1


async def test_a_call_of_a_source_is_shown_with_its_arguments_to_their_end() -> None:
    arguments = json.dumps(
        {"first": "harmless", "list": ["harmless"] * 400, "last": "dangerous\u202e[@click=app.quit]x[/]"}
    )
    async with driving(with_call(arguments), LARGE) as bench:
        await bench.look()
        assert "weather from mcp:test" in bench.text()
        assert "It says of itself, not verified: read-only, safe" in bench.text()
        while bench.diff.unseen:
            assert "dangerous" not in bench.text()
            await bench.press("a")
            await bench.look()
        assert "dangerous‹202E›[@click=app.quit]x[/]" in bench.text()
        await bench.press("a")
        (intent,) = bench.session.intents
        assert isinstance(intent, ApproveProposal)


async def test_blanks_and_lines_of_a_check_are_shown_as_they_are() -> None:
    async with driving(with_check("echo 'a   b'\nrm c"), LARGE) as bench:
        assert "$ echo 'a   b'" in bench.text()
        assert "rm c" in next(line for line in bench.text().splitlines() if "rm c" in line and "echo" not in line)


async def test_what_is_not_seen_is_shown_as_its_code_in_diffs_commands_and_names() -> None:
    name = "x\u3164.py"
    diff = f"--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@ \u115f\n+a\ufe0fb\u2800c\U000e0100\n"
    async with driving(with_diff(diff), LARGE) as bench:
        assert "x‹3164›.py" in bench.text()
        assert "a‹FE0F›b‹2800›c‹E0100›" in bench.text()
        assert "@@ ‹115F›" in bench.text()
    for waits in (with_command("rm\u3164 -rf"), with_check("rm\u3164 -rf")):
        async with driving(waits, LARGE) as bench:
            assert "rm‹3164› -rf" in bench.text()


async def test_a_rejection_carries_its_reason() -> None:
    async with driving(waiting()) as bench:
        await bench.gate.reject("multiply instead")
        assert bench.session.intents == [RejectProposal(DIFF.id, "multiply instead")]


async def test_a_rejection_without_words_says_so() -> None:
    async with driving(waiting()) as bench:
        await bench.press("r", "enter")
        assert bench.session.intents == [RejectProposal(DIFF.id, "no reason given")]


async def test_a_reason_is_not_asked_for_any_more_when_somebody_else_decided() -> None:
    async with driving(waiting()) as bench:
        await bench.press("r", *"too long")
        await bench.record(ActionDecided(DIFF.id, Verdict.REJECT, "user", "by another"))
        assert bench.screen.name != "reason"
        await bench.press("enter")
        assert bench.session.intents == []


async def test_a_rejection_can_be_thought_better_of() -> None:
    async with driving(waiting()) as bench:
        await bench.press("r", "escape")
        assert bench.session.intents == []
        assert bench.gate.has_focus


async def test_an_edit_is_sent_when_it_is_saved() -> None:
    async with driving(waiting()) as bench:
        await bench.press("e")
        area = bench.screen.query_one(TextArea)
        assert area.text == runs.WRONG
        area.text = runs.RIGHT
        await bench.press("ctrl+s")
        assert bench.session.intents == [EditProposal(DIFF.id, runs.RIGHT)]


def asking(text: str) -> ScriptedSession:
    hints = (
        "asks during the call of mcp__tables__book:",
        "Which table?\nAs many as you like",
        'name (required): {"a": 1}',
    )
    proposal = runs.proposed(
        Permission.EXTERNAL, ANSWER_SERVER, "P-90", text, source="mcp:tables", spec="1", hints=hints
    )
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal))


@SIZES
async def test_the_question_of_a_server_is_filled_in_before_it_is_approved(size: tuple[int, int]) -> None:
    lacking, filled = '{\n  "name": null\n}', '{\n  "name": "Ann"\n}'
    async with driving(asking(lacking), size) as bench:
        await bench.look()
        assert "Which table?" in bench.text()
        await bench.press("a")
        assert bench.session.intents == []
        await bench.press("e")
        area = bench.screen.query_one(TextArea)
        assert area.text == lacking
        area.text = filled
        await bench.press("ctrl+s")
        assert bench.session.intents == [EditProposal(ProposalId("P-90"), filled)]
    async with driving(asking(filled), size) as bench:
        await bench.look()
        await bench.press("A", "a")
        assert [type(each) for each in bench.session.intents] == [ApproveProposal]


async def test_the_message_of_a_merge_can_be_edited() -> None:
    merge = runs.proposed(Permission.MERGE, "merge", "P-90", "Merge it\n", method=MergeMethod.SQUASH)
    async with driving(ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(merge))) as bench:
        await bench.press("e")
        assert bench.screen.query_one(TextArea).text == "Merge it\n"
        assert "Edit the message" in bench.text()


async def test_an_edit_that_was_refused_comes_back_for_another_try() -> None:
    async with driving(waiting()) as bench:
        await bench.press("e")
        bench.screen.query_one(TextArea).text = "my own words"
        await bench.press("ctrl+s", "e")
        assert bench.screen.query_one(TextArea).text == "my own words"
        assert "the text that was refused" in bench.text()
        await bench.press("escape", "e")
        assert bench.screen.query_one(TextArea).text == runs.WRONG
        assert len(bench.session.intents) == 1


async def test_an_edit_that_is_discarded_or_changes_nothing_sends_nothing() -> None:
    async with driving(waiting()) as bench:
        await bench.press("e")
        bench.screen.query_one(TextArea).text = "other"
        await bench.press("escape")
        await bench.press("e", "ctrl+s")
        assert bench.session.intents == []


async def test_checks_can_be_skipped_and_diffs_cannot() -> None:
    checks = runs.checks("P-10", CheckPurpose.BASELINE)
    async with driving(ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(checks))) as bench:
        await bench.look()
        await bench.press("s")
        assert bench.session.intents == [SkipProposal(ProposalId("P-10"))]
    async with driving(waiting()) as bench:
        await bench.look()
        await bench.press("s")
        assert bench.session.intents == []
        assert "does not fit" in bench.text()


async def test_a_rule_is_kept_for_whom_it_is_meant_and_not_too_quickly() -> None:
    async with driving(waiting()) as bench:
        await bench.press("A")
        assert "diff of shop/cart.py" in bench.text()
        assert bench.session.intents == [ListPastActions(Permission.DIFF)]
        past = PastAction(runs.SESSION, replace(runs.diff_step(30, runs.WRONG)[1], diff=""), Verdict.REJECT, "user")
        await bench.answer(PastActionsFound(Permission.DIFF, PastActions((past,), 1)))
        assert "1 of 1 past diffs in 1 session; you rejected 1 of these" in bench.text()
        await bench.press("enter")
        assert "too quick" in bench.text()
        await bench.look()
        await bench.press("down", "tab", "enter")
        assert "too quick" in bench.text()
        await bench.look()
        await bench.press("enter")
        assert bench.session.intents[1:] == [ChangeRule(Rule(Permission.DIFF, paths=("shop/**",)), RuleScope.REPO)]


async def test_rules_are_listed_and_revoked() -> None:
    checks = Rule(Permission.CHECK, any=True)
    session = waiting().record(ApprovalChanged(Permission.CHECK, True, checks, RuleScope.USER))
    async with driving(session) as bench:
        await bench.press("L")
        assert "any check" in bench.text()
        assert "you, here" in bench.text()
        await bench.press("x")
        await bench.look()
        await bench.press("y")
        assert bench.session.intents == [ChangeRule(checks, RuleScope.USER, always=False)]
        await bench.record(ApprovalChanged(Permission.CHECK, False, checks, RuleScope.USER))
        assert "There is no rule" in bench.text()


async def test_no_rule_is_offered_for_what_has_to_be_looked_at() -> None:
    special = replace(runs.diff_step(30, runs.WRONG)[1], special=("shop/cart.py",))
    async with driving(ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(special))) as bench:
        await bench.press("A")
        assert bench.screen.name == "workbench"


async def test_merges_are_never_let_through_always() -> None:
    session = ScriptedSession(*runs.up_to_done(), ActionProposed(runs.merge()))
    async with driving(session, (200, 50)) as bench:
        await bench.look()
        await bench.press("A")
        assert bench.screen.name == "workbench"
        await bench.press("a")
        assert bench.session.intents == [ApproveProposal(ProposalId("P-80"), shown_sha(runs.merge()))]


@pytest.mark.parametrize(
    ("method", "following", "edits"),
    [
        (MergeMethod.MERGE, MergeMethod.SQUASH, True),
        (MergeMethod.SQUASH, MergeMethod.REBASE, True),
        (MergeMethod.REBASE, MergeMethod.MERGE, False),
    ],
)
async def test_the_method_of_a_merge_is_shown_and_changed(
    method: MergeMethod, following: MergeMethod, edits: bool
) -> None:
    proposal = runs.merge(method=method)
    session = ScriptedSession(*runs.up_to_done(), ActionProposed(proposal))
    async with driving(session, (200, 50)) as bench:
        await bench.look()
        assert f"{method.capitalize()}: " in bench.text()
        assert f"  {method}  Merge agent/T-1" in bench.text()
        assert ("edit: e" in bench.text()) is edits
        await bench.press("m")
        assert bench.session.intents == [ChooseMergeMethod(ProposalId("P-80"), following)]


async def test_a_proposal_without_methods_has_none_to_change() -> None:
    session = ScriptedSession(*runs.up_to_done(), ActionProposed(runs.merge()))
    async with driving(session, (200, 50)) as bench:
        await bench.look()
        await bench.press("m")
        assert bench.session.intents == []
        assert "method does not fit what waits" in bench.text()


@pytest.mark.parametrize(("answer", "intents"), [("n", []), ("escape", []), ("enter", []), ("y", [AbortTask()])])
async def test_abort_asks(answer: str, intents: list[AbortTask]) -> None:
    async with driving(waiting()) as bench:
        await bench.press("X")
        await bench.look()
        await bench.press(answer)
        assert bench.session.intents == intents


async def test_a_click_on_a_hint_obeys_the_same_rules() -> None:
    async with driving(waiting()) as bench:
        await bench.pilot.click("#gate", offset=(2, 2))
        await bench.idle()
        assert bench.session.intents == []
        await bench.look()
        await bench.pilot.click("#gate", offset=(2, 2))
        await bench.idle()
        assert len(bench.session.intents) == 1


async def test_trouble_says_what_and_what_to_do_and_is_tried_again() -> None:
    trouble = TroubleMet("model", "the server at 127.0.0.1:8080 does not answer", "start it, then try again")
    async with driving(ScriptedSession(*runs.up_to_reflexion(), trouble), SMALL) as bench:
        shown = bench.text()
        assert "does not answer" in shown
        assert "start it, then try again" in shown
        await bench.press("0", "t")
        assert bench.session.intents == [RetryTrouble()]


async def test_what_only_a_new_start_can_help_is_not_offered_to_be_tried_again() -> None:
    trouble = TroubleMet("model", "no model is configured", "set model.path, then start again", lasting=True)
    async with driving(ScriptedSession(*runs.up_to_reflexion(), trouble), SMALL) as bench:
        keys = bench.text().splitlines()[-2].strip()
        assert keys.startswith("leave, then start again: q │ abort: X")
        assert "try again" not in keys
        assert keys.count("leave") == 1
        await bench.press("0", "t")
        assert bench.session.intents == []


async def test_advice_that_is_long_is_read_to_its_end() -> None:
    advice = "start the server, or set model.path to a GGUF file and the workbench serves it itself"
    trouble = TroubleMet("model", "nothing answers at http://127.0.0.1:9", advice)
    async with driving(ScriptedSession(*runs.up_to_reflexion(), trouble), SMALL) as bench:
        lines = [line.strip() for line in bench.text().splitlines()]
        at = next(number for number, line in enumerate(lines) if line.startswith("start the server"))
        assert " ".join(lines[at : at + 2]) == advice
        assert lines[at + 2].startswith("try again: t")


@pytest.mark.parametrize("keys", [("enter",), ("s",), ("0", "enter")])
async def test_a_task_is_started_from_the_plan_and_from_the_bar(keys: tuple[str, ...]) -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        await bench.press(*keys)
        assert bench.session.intents == [StartTask(runs.T1)]


async def test_a_task_is_not_started_while_one_runs() -> None:
    async with driving(waiting()) as bench:
        await bench.plan.start("T-2")
        assert bench.session.intents == []


async def test_what_cannot_be_decided_offers_no_keys() -> None:
    async with driving(waiting().show(Live(decidable=False))) as bench:
        await bench.look()
        await bench.press("a", "r", "e", "A")
        assert bench.session.intents == []
        assert "approve: a" not in bench.text()


async def test_a_moved_key_approves_and_the_hint_says_so() -> None:
    async with driving(waiting(), keys={"approve": "f2"}) as bench:
        await bench.look()
        await bench.press("a")
        assert bench.session.intents == []
        assert "approve: f2" in bench.text()
        await bench.press("f2")
        assert len(bench.session.intents) == 1


async def test_notes_that_were_seen_stay_so_at_any_size() -> None:
    session = ScriptedSession(*runs.up_to_done(), ActionProposed(runs.merge()))
    async with driving(session, LARGE) as bench:
        assert bench.diff.unseen == 0
        for width in (60, 130, 80):
            await bench.resize(width, 40)
            assert bench.diff.unseen == 0
