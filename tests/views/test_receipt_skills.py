"""Skills in the receipt and in the code pane: why they are there, and what a change after a prompt means."""

from agent_workbench.core.events import Author, Event, Recorded, SkillLeftOut, SkillsChosen, SkillText
from agent_workbench.core.fold import fold_all
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.code import CodeState, view_code
from agent_workbench.views.receipt import DROPPED, table_lines, view_receipt
from tests.fakes import runs

BEFORE = runs.up_to_preview()
BUILT = runs.preview(len(BEFORE)).built
CHANGED = SkillsChosen(
    runs.T1,
    (SkillText("git-workflow", "Commit.", "chosen by the user", 357),),
    (SkillLeftOut("python-style", "dropped by the user", 41),),
    by=Author.USER,
    counted=True,
)


def state_after(*events: Event) -> SessionState:
    return fold_all(Recorded(seq, "2026-11-20T10:15:00.000000Z", event) for seq, event in enumerate(events))


def test_each_has_its_reason_and_what_is_left_out_follows() -> None:
    receipt = view_receipt(state_after(*BEFORE, BUILT))
    assert receipt is not None
    told = [line for line in table_lines(receipt) if "skill " in line]
    assert told[0].endswith("skill python-style  (python, refactor)")
    assert "skill git-workflow  (left out: 357 tokens do not fit" in told[1]
    rows = {row.skill: row for row in view_code(state_after(*BEFORE, BUILT)).rows if row.skill}
    assert (rows["python-style"].state, rows["python-style"].tokens) == (CodeState.IN_PROMPT, "41")
    assert rows["git-workflow"].state is CodeState.OFFERED


def test_one_that_is_dropped_after_a_prompt_stays_until_the_next_summary() -> None:
    receipt = view_receipt(state_after(*BEFORE, BUILT, CHANGED, BUILT))
    assert receipt is not None
    found = [row for row in receipt.rows if row.skill == "python-style"]
    assert found
    assert {(row.note, row.dropped) for row in found} == {(DROPPED, True)}
    rows = {row.skill: row for row in view_code(state_after(*BEFORE, BUILT, CHANGED)).rows if row.skill}
    assert rows["python-style"].state is CodeState.DROPPED
    assert rows["python-style"].remark == DROPPED
    assert rows["git-workflow"].state is CodeState.IN_PROMPT
