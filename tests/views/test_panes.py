"""What the other panes, the gate and the status line say in each state."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    Author,
    ChatStarted,
    ChunkDropped,
    ChunkPinned,
    ContextCompacted,
    Event,
    GrammarIgnored,
    ModelAnswered,
    ModelObserved,
    PlanRead,
    PromptBuilt,
    PromptPart,
    Recorded,
    TaskFinished,
    TaskMerged,
    TaskStarted,
    TaskStatusChanged,
    UserSaid,
)
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.live import Live, ReplayPosition, SessionUpdate
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposal_kinds import KINDS, DiffProposal
from agent_workbench.core.proposals import END_UNCHANGED, MAX_DIFF_LINES, Verdict
from agent_workbench.core.repo.retrieval import VECTORS_UNWANTED, Chunk, IndexStatus, Signal, SignalKind
from agent_workbench.core.repo.workspace import MergeOutcome
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.views.code import (
    CodeState,
    index_line,
    index_words,
    matched_words,
    reasons_of,
    share_bar,
    shown_code_snapshots,
    view_code,
)
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import GateAct, GateMode, acts_for, view_gate
from agent_workbench.views.plan import view_plan, view_scratchpad
from agent_workbench.views.status import view_status
from agent_workbench.views.timeline import view_replay
from agent_workbench.views.transcript_blocks import AnswerParts, split_answer
from tests.fakes import runs


def state_after(*events: Event) -> SessionState:
    return fold_all(Recorded(seq, "2026-11-20T10:15:00.000000Z", event) for seq, event in enumerate(events))


def update_after(*events: Event, live: Live | None = None) -> SessionUpdate:
    return SessionUpdate(state_after(*events), live or Live())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", AnswerParts("")),
        ("Thought: so", AnswerParts("so")),
        ("Thought: so\nAction: grep\n{}", AnswerParts("so", "grep", "{}")),
        ("Reflexion: wrong", AnswerParts("wrong", reflects=True)),
        ("no shape at all", AnswerParts("no shape at all")),
        ("Action: write_diff\n--- a", AnswerParts("", "write_diff", "--- a")),
    ],
)
def test_answers_are_taken_apart(text: str, parts: AnswerParts) -> None:
    assert split_answer(text) == parts


def test_the_gate_says_what_can_be_started() -> None:
    view = view_gate(update_after(*runs.opening()))
    assert (view.mode, view.task, view.acts) == (GateMode.IDLE, runs.T1, (GateAct.START,))


def test_an_empty_plan_and_a_queued_one_are_told_in_one_line_of_a_small_screen() -> None:
    *before, read = runs.opening()
    assert isinstance(read, PlanRead)
    empty = view_gate(update_after(*before, replace(read, plan=replace(read.plan, tasks=()))))
    tasks = tuple(replace(each, status=TaskStatus.QUEUED) for each in read.plan.tasks)
    queued = view_gate(update_after(*before, replace(read, plan=replace(read.plan, tasks=tasks))))
    assert (queued.word, queued.text) == ("no task can start", "3 tasks in the queue; Q shows it")
    for gate in (empty, queued):
        assert len(f"  {gate.word}  {gate.text}") <= 78


def test_the_gate_is_starting_until_there_is_a_plan() -> None:
    assert view_gate(SessionUpdate(SessionState())).mode is GateMode.STARTING
    opening = view_gate(SessionUpdate(SessionState(), Live(activity="opening the session")))
    assert (opening.mode, opening.word) == (GateMode.STARTING, "opening the session")


def test_a_plan_that_cannot_be_read_is_said_where_it_would_stand() -> None:
    update = SessionUpdate(SessionState(), Live(no_plan="there is no plan at P (`agent init` writes one)"))
    gate = view_gate(update)
    assert (gate.mode, gate.word, gate.acts) == (GateMode.IDLE, "no plan", ())
    assert "`agent init`" in gate.text
    assert "`agent init`" in view_plan(update.state, update.live.no_plan).empty


def test_nothing_can_be_done_about_what_cannot_be_decided() -> None:
    assert view_gate(update_after(*runs.up_to_first_diff(), live=Live(decidable=False))).acts == ()


@pytest.mark.parametrize(
    ("kind", "acts"),
    [
        (Permission.DIFF, "approve reject edit always abort"),
        (Permission.COMMAND, "approve reject edit skip always abort"),
        (Permission.CHECK, "approve reject skip always abort"),
        (Permission.COMMIT, "approve reject edit always abort"),
        (Permission.READ, "approve reject always abort"),
        (Permission.MERGE, "approve reject skip"),
        (Permission.SUMMARY, "approve reject edit always abort"),
        (Permission.FINISH, "approve reject always abort"),
        (Permission.EXTERNAL, "approve reject skip always abort"),
        (Permission.SCRIPT, "approve reject skip always abort"),
        (Permission.PLAN, "approve reject skip always abort"),
        (Permission.KNOWLEDGE, "approve reject edit skip always abort"),
    ],
)
def test_each_kind_has_its_acts(kind: Permission, acts: str) -> None:
    spec = "0" * 16 if KINDS[kind].calls else ""
    proposal = runs.made_of(kind, "grep", "x", commands=("x",), paths=("x",), spec=spec)
    assert " ".join(acts_for(proposal)) == acts


def test_a_call_of_a_source_names_tool_source_and_arguments() -> None:
    arguments = '{"city": "Oslo", "days": [1, 2]}'
    call = runs.proposed(
        Permission.EXTERNAL, "weather", "P-9", arguments, source="mcp:test", spec="0" * 16, hints=("read-only",)
    )
    update = update_after(*runs.opening(), *runs.started(), ActionProposed(call))
    view = view_gate(update)
    assert (view.word, view.text, view.more) == ("external tool", f"weather {arguments}", "from mcp:test")
    notes = [block.text for block in view_diff(update).notes]
    assert notes[0] == "weather from mcp:test"
    assert "not verified: read-only" in notes[1]
    assert notes[-1] == '{\n  "city": "Oslo",\n  "days": [\n    1,\n    2\n  ]\n}'


def test_a_call_of_a_server_shows_its_entry_and_the_whole_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "x\u202e": {"enum": ["\x1b[2J"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    spec = ToolSpec(
        "weather", "tells", Permission.EXTERNAL, json.dumps(schema), "mcp:test", server="uvx weather (entry 0a)"
    )
    call = runs.proposed(Permission.EXTERNAL, "weather", "P-9", "{}", source="mcp:test", spec=spec.digest)
    begun = [replace(each, specs=(spec,)) if isinstance(each, TaskStarted) else each for each in runs.started()]
    update = update_after(*runs.opening(), *begun, ActionProposed(call))
    first, *_, heading, lines = [block.text for block in view_diff(update).notes]
    assert first == "weather from mcp:test, uvx weather (entry 0a)"
    assert heading == "Schema of the arguments"
    assert lines.splitlines() == [
        'city (required): {"type": "string"}',
        'x‹202E›: {"enum": ["\\u001b[2J"]}',
        'type: "object"',
        "additionalProperties: false",
    ]


def test_what_is_not_merged_yet_is_named_where_nothing_else_can_start() -> None:
    update = update_after(*runs.up_to_done())
    alone = replace(update.state, plan=replace(update.state.plan, tasks=update.state.plan.tasks[:1]))
    view = view_gate(replace(update, state=alone))
    assert (view.word, view.text) == ("all tasks are done", "m in the plan merges T-1")


def test_the_diff_pane_goes_back_to_what_was_applied_last() -> None:
    waiting = view_diff(update_after(*runs.up_to_first_diff()))
    assert waiting.proposal
    answered = view_diff(update_after(*runs.up_to_first_diff()[:-1]))
    assert (answered.diff, answered.proposal, answered.title) == (runs.WRONG, "", "Diff · being checked")
    after = view_diff(update_after(*runs.up_to_reflexion()))
    assert (after.diff, after.proposal) == (runs.WRONG, "")


def test_checks_are_listed_with_why() -> None:
    checks = runs.checks("P-1", CheckPurpose.FINAL)
    view = view_diff(update_after(*runs.opening(), *runs.started(), ActionProposed(checks)))
    text = "\n".join(block.text for block in view.notes)
    assert runs.PYTEST in text
    assert "before the commit" in text


def test_a_task_says_whether_it_is_merged() -> None:
    done = view_plan(state_after(*runs.up_to_done()))
    assert done.rows[0].mergeable
    merged = TaskMerged(runs.T1, MergeOutcome(runs.COMMIT_ID, "main", "fast-forward"))
    after = view_plan(state_after(*runs.up_to_done(), merged))
    assert not after.rows[0].mergeable
    assert "merged into main" in after.rows[0].short.blocks[1].text


def test_a_failed_task_says_how_to_start_it_again() -> None:
    failed = TaskFinished(runs.T1, TaskStatus.FAILED, "5 failures in a row")
    state = state_after(*runs.up_to_first_diff(), TaskStatusChanged(runs.T1, TaskStatus.FAILED), failed)
    assert view_plan(state).rows[0].short.blocks[1].text == "failed: 5 failures in a row; s starts it again"


def test_a_check_mark_stands_only_where_something_passed() -> None:
    ended = (TaskStatusChanged(runs.T1, TaskStatus.DONE), TaskFinished(runs.T1, TaskStatus.DONE, "nothing to do"))
    events = runs.up_to_done()
    unchecked = [replace(each, checks=()) if isinstance(each, TaskStarted) else each for each in events]
    assert view_plan(state_after(*events)).rows[0].short.blocks[0].label == "✓"
    head, under = view_plan(state_after(*unchecked, *ended)).rows[0].short.blocks[:2]
    assert (head.label, "nothing was checked" in under.text) == ("•", True)


def test_what_an_earlier_session_did_has_no_check_mark_here() -> None:
    state = state_after(*runs.opening(), TaskStatusChanged(runs.T1, TaskStatus.DONE))
    assert view_plan(state).rows[0].short.blocks[0].label == "•"


def test_a_resumed_session_names_no_model_before_one_is_ready() -> None:
    update = update_after(*runs.opening())
    waits = replace(update, live=replace(update.live, awaits_model=True))
    assert [each.text for each in view_status(waits).figures[:2]] == ["ask", "no model yet"]


def test_notes_are_of_the_task_that_runs_or_of_the_selected_one() -> None:
    running = state_after(*runs.up_to_first_diff())
    assert view_scratchpad(running, "T-2").task == runs.T1
    assert view_scratchpad(state_after(*runs.opening()), "T-2").task == runs.T2
    assert view_scratchpad(state_after(*runs.opening()), "gone").task is None


def test_the_status_line_says_that_it_is_a_demo_and_that_nothing_confines() -> None:
    demo = view_status(update_after(*runs.opening())).figures
    assert [each.text for each in demo[:2]] == ["ask", "scripted demo"]
    bare = view_status(update_after(*runs.opening(sandbox=False))).figures
    assert "no sandbox" in [figure.text for figure in bare]
    assert min(bare, key=lambda figure: figure.rank).rank == 0


def test_a_replay_says_where_it_is() -> None:
    update = update_after(*runs.up_to_first_diff())
    assert view_replay(update) is None
    view = view_replay(replace(update, live=Live(replay=ReplayPosition(update.state.seq, update.state.seq))))
    assert view is not None
    assert (view.seq + 1, view.count, view.event) == (view.count, view.count, "waits: diff of shop/cart.py")
    talk = update_after(*runs.opening(), ChatStarted(1), UserSaid("why?"), live=Live(replay=ReplayPosition(9, 9)))
    view = view_replay(talk)
    assert view is not None
    assert "why?" in view.event


def test_what_was_repaired_stands_above_the_diff_and_in_the_bar() -> None:
    mended = ("hunk 1: the header said line 3, its lines stand at 14", "the final newline was missing")
    proposal = runs.proposed(Permission.DIFF, "write_diff", "P-9", runs.RIGHT, diff=runs.RIGHT, repaired=mended)
    update = update_after(*runs.opening(), *runs.started(), ActionProposed(proposal))
    notes = "\n".join(block.text for block in view_diff(update).notes)
    assert all(sentence in notes for sentence in mended)
    assert "2 repairs" in view_gate(update).more
    assert "repair" not in view_gate(update_after(*runs.up_to_first_diff())).more


def test_the_status_line_says_what_was_paid_and_what_the_server_cannot_do() -> None:
    paid = ModelAnswered(1, "Thought: so", AnswerFigures(100, 0, 5, dollars=0.25), "http://a")
    met = ModelObserved(ModelFacts("http://a", "m", 4096, takes_grammar=False, counts_tokens=False))
    texts = [each.text for each in view_status(update_after(*runs.opening(), *runs.started(), met, paid, paid)).figures]
    assert {"$0.5000", "no grammar", "no token counts"} <= set(texts)
    plain = [each.text for each in view_status(update_after(*runs.up_to_first_diff())).figures]
    assert not [text for text in plain if "$" in text or text.startswith("no ")]
    ignored = GrammarIgnored("http://127.0.0.1:8080", 1, "x")
    assert "no grammar" in [each.text for each in view_status(update_after(*runs.opening(), ignored)).figures]


def test_a_piece_of_code_says_whether_the_model_still_has_it() -> None:
    first, second = runs.retrieved()[0].chunks
    elsewhere = replace(first, path="shop/tax.py")
    before = (*runs.up_to_first_diff(), ChunkPinned(elsewhere), ChunkDropped(second.place))
    rows = view_code(state_after(*before)).rows
    assert [row.state for row in rows] == [CodeState.PINNED, CodeState.IN_PROMPT, CodeState.DROPPED]
    assert [row.place for row in rows] == [elsewhere.place, first.place, second.place]
    after = (*before, ContextCompacted(2, "so", Author.MODEL, 20, pinned=(elsewhere,)))
    view = view_code(state_after(*after))
    assert [row.state for row in view.rows] == [CodeState.PINNED, CodeState.SUMMED_UP, CodeState.LEFT_OUT]
    assert "2 not in the prompt" in view.title
    kept = (*before, ContextCompacted(2, "so", Author.MODEL, 20, code=(first, second)))
    standings = [row.state for row in view_code(state_after(*kept)).rows]
    assert standings == [CodeState.PINNED, CodeState.IN_PROMPT, CodeState.DROPPED]
    assert view_code(state_after(*after, ChunkPinned(first))).rows[1].state is CodeState.PINNED


def test_a_piece_costs_what_the_server_counted_and_else_about_what_it_was_estimated_at() -> None:
    first, second = runs.retrieved()[0].chunks
    parts = (PromptPart("code", 5), PromptPart(f"code {first.place}", 61), PromptPart(f"code {second.place}", 44))
    before = (*runs.opening(), *runs.started(), *runs.retrieved())
    assert [row.tokens for row in view_code(state_after(*before)).rows] == ["~38", "~41"]
    asked = PromptBuilt(1, Purpose.EXECUTOR, 3, 1140, "0" * 64, parts)
    view = view_code(state_after(*before, asked))
    assert [row.tokens for row in view.rows] == ["61", "44"]
    assert "105 tokens" in view.title
    assert "~" not in view.title
    named = replace(asked, parts=(PromptPart("pinned", 9),))
    assert view_code(state_after(*before, asked, ChunkPinned(first), named)).rows[0].tokens == "61"


def test_code_that_came_on_the_way_stands_behind_what_was_found_for_the_task() -> None:
    searched = replace(runs.retrieved()[0].chunks[0], path="shop/tax.py")
    read = replace(searched, path="shop/read.py", score=0.0)
    finished = ActionFinished(ProposalId("P-1"), ActionResult.OK, "found", shown=(searched, read))
    mine = replace(read, path="shop/mine.py")
    events = (*runs.up_to_first_diff(), finished, ChunkPinned(mine), ChunkPinned(mine, pinned=False))
    rows = view_code(state_after(*events)).rows
    assert [row.path for row in rows] == ["shop/mine.py", "shop/cart.py", "tests/test_cart.py", "shop/tax.py"]
    assert [row.remark for row in rows] == ["", "", "", "found by the model"]
    assert {row.state for row in rows} == {CodeState.IN_PROMPT}


def test_reasons_are_bars_of_their_share_the_strongest_first() -> None:
    chunk = Chunk("a.py", 1, 2, "x", 1.0, signals=(Signal(SignalKind.PATH, 0.2), Signal(SignalKind.WORDS, 0.8, ("x",))))
    assert [(each.name, share_bar(each.share, 8)) for each in reasons_of(chunk)] == [
        ("words", "██████▌"),
        ("path", "█▌"),
    ]
    assert matched_words(chunk) == ("x",)
    assert (share_bar(0.0, 8), share_bar(0.001, 8), share_bar(2.0, 8)) == ("", "▌", "█" * 8)


def test_the_code_pane_says_how_far_the_index_is() -> None:
    said = view_code(state_after(*runs.opening()), IndexStatus(312, 2066, vectors="held by another session")).progress
    assert said == "indexing 312 of 2,066 files · vectors: held by another session"
    done = IndexStatus(9, 9, 2066, 14_002, left_out=1, binary=12, submodules=2, vectors=VECTORS_UNWANTED)
    left_out = "left out: 1 file (too large, or too many), 12 (binary, or unreadable), 2 submodules"
    assert index_words(done) == ("2,066 files, 14,002 pieces indexed", left_out)
    full = IndexStatus(9, 9, 1, 1, unsaved="no space left")
    assert index_words(full) == ("1 file, 1 piece indexed", "not saved: no space left")
    assert index_line(full) == "not saved: no space left · 1 file, 1 piece indexed"
    assert index_line(done) == " · ".join(index_words(done))
    assert index_words(IndexStatus()) == ()


@given(st.lists(st.integers(0, len(runs.up_to_done())), max_size=6))
def test_the_code_of_any_place_is_what_it_is_from_the_beginning(places: list[int]) -> None:
    pinned = runs.retrieved()[0].chunks[0]
    more = (ChunkPinned(pinned), ContextCompacted(3, "so", Author.MODEL, 30), *runs.answered(3, "x"))
    events = (*runs.up_to_reflexion(), *more)
    story = [Recorded(seq, "", event) for seq, event in enumerate(events)]
    trail = shown_code_snapshots()
    for place in places:
        state = fold_all(story[:place])
        assert view_code(state, None, trail) == view_code(state)


def test_a_diff_with_more_lines_than_are_shown_cannot_be_approved() -> None:
    short, long = (f"@@ -0,0 +1,{lines} @@\n" + "+\n" * lines for lines in (3, MAX_DIFF_LINES + 1))
    proposals = [DiffProposal(ProposalId("P-1"), "write_diff", "", 1, diff=diff) for diff in (short, long)]
    assert [GateAct.APPROVE in acts_for(proposal) for proposal in proposals] == [True, False]
    assert GateAct.REJECT in acts_for(proposals[1])


def test_a_finish_with_nothing_changed_says_how_its_checks_stand() -> None:
    end = runs.proposed(Permission.FINISH, END_UNCHANGED, "P-94", "[b]nothing[/b] is to be done")
    tested = runs.tested("P-93", CheckPurpose.FINAL, good=True)
    read = (*runs.opening(), *runs.started(), *runs.retrieved(), *runs.read_step())
    for before, told in (((*read, *tested), "its checks pass"), (read, "its checks were not run at the end")):
        update = update_after(*before, ActionProposed(end))
        bar, pane = view_gate(update), view_diff(update)
        assert (bar.word, bar.text, bar.more) == (
            "finish",
            f"nothing changed, {told}",
            "[b]nothing[/b] is to be done",
        )
        assert pane.title == "Finish · waits"
        assert f"{told.capitalize()}." in [block.text for block in pane.notes]
        assert "[b]nothing[/b] is to be done" in [block.text for block in pane.notes]
    rejected = ActionDecided(ProposalId("P-30"), Verdict.REJECT, "user", "no")
    update = update_after(*runs.up_to_first_diff(), rejected, ActionProposed(end))
    assert any("1 diff came to the gate; none is in effect." in block.text for block in view_diff(update).notes)


@pytest.mark.parametrize(("reason", "told"), [("count the quantity", 1), ("", 0)])
def test_the_merge_says_in_a_line_how_a_rejection_is_kept(reason: str, told: int) -> None:
    rejected = ActionDecided(runs.diff_step(30, runs.WRONG)[1].id, Verdict.REJECT, "user", reason)
    update = update_after(*runs.up_to_first_diff(), rejected, ActionProposed(runs.merge()))
    assert sum("M, then +" in block.text for block in view_diff(update).notes) == told
