"""What an export says of a session: in markdown nothing it holds is markup, in JSON all of it is there."""

import json

from agent_workbench.core import events as e
from agent_workbench.core.events.codec import decode_event
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.repo.workspace import FileStat, MergeOutcome
from agent_workbench.subjects.forge.view import pull_request
from agent_workbench.views.reports.json_documents import FORMAT, VERSION, session_document
from agent_workbench.views.reports.task_report import task_report
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

HOSTILE = "no: <script>alert(1)</script> fixes #7 @ada ```"
FILES = (FileStat("shop/cart.py", 1, 1), FileStat("a|b.bin", None, None))


def test_markdown_tells_what_was_done_and_decided() -> None:
    rejected = e.ActionDecided(ProposalId("p1"), Verdict.REJECT, "user", HOSTILE)
    state = ScriptedSession(*runs.up_to_reflexion(), rejected).newest.state
    assert state.run is not None
    told = pull_request(state, [task_report(state.run, FILES)])
    for section in ("# T-1: ", "## What was done", "## Files", "## Checks", "## Decisions"):
        assert section in told
    assert "| `shop/cart.py` | +1 −1 |" in told
    assert "| `a\\|b.bin` | binary |" in told
    assert "no: \\<script\\>alert(1)\\</script\\> fixes \\#<!-- -->7 @<!-- -->ada \\`\\`\\`" in told
    assert f"`agent sessions verify {state.session}`" in told
    assert state.hash in told
    assert "Git does not have the files" in pull_request(state, [task_report(state.run, None)])


def test_what_was_taken_back_and_what_was_merged_is_told() -> None:
    _, diff = runs.diff_step(30, runs.WRONG)
    undone = e.StepUndone(diff.id, 2, ("shop/cart.py",), "t" * 40)
    state = ScriptedSession(*runs.up_to_done()[:-1], undone).newest.state
    assert state.run is not None
    account = task_report(state.run, FILES)
    assert "- undo: the diff of step 2 (`shop/cart.py`)" in pull_request(state, [account])
    assert "**done**: committed" in pull_request(state, [account])
    merged = MergeOutcome(runs.COMMIT_ID, "main", "fast-forward")
    after = ScriptedSession(*runs.up_to_done(), e.TaskMerged(runs.T1, merged)).newest.state
    assert after.run is not None
    assert "**done**: merged into main (fast-forward)" in pull_request(after, [task_report(after.run, FILES)])
    elsewhere = task_report(state.run, FILES, "main")
    assert "**done**: merged into main (outside of the session)" in pull_request(state, [elsewhere])
    (task,) = json.loads(json.dumps(session_document(state, (), [elsewhere])))["tasks"]
    assert task["undone"] == [{"seq": state.seq, "step": 2, "paths": ["shop/cart.py"]}]
    assert task["merged"]["into"] == "main"


def test_json_holds_every_event_and_a_summary() -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    state = session.newest.state
    assert state.run is not None
    events = (*state.opening, *state.run.history)
    document = json.loads(json.dumps(session_document(state, events, [task_report(state.run, FILES)])))
    assert (document["format"], document["version"], document["session"]) == (FORMAT, VERSION, state.session)
    read = [decode_event(each["kind"], each["body"]) for each in document["events"]]
    assert read == [each.event for each in events]
    (task,) = document["tasks"]
    assert (task["task"], task["status"], task["files"][1]["added"]) == ("T-1", None, None)
    assert [each["paths"] for each in task["changes"]] == [["shop/cart.py"]]
