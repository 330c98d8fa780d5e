"""What an export says of a session: in markdown nothing it holds is markup, in JSON all of it is there."""

import json

from agent_workbench.core import events as e
from agent_workbench.core.codec import decode_event
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.views.pull_request import pull_request
from agent_workbench.core.views.session_document import FORMAT, VERSION, session_document
from agent_workbench.core.views.task_account import account_of
from agent_workbench.core.workspace import FileStat
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

HOSTILE = "no: <script>alert(1)</script> fixes #7 @ada ```"
FILES = (FileStat("shop/cart.py", 1, 1), FileStat("a|b.bin", None, None))


def test_markdown_tells_what_was_done_and_decided() -> None:
    rejected = e.ActionDecided(ProposalId("p1"), Verdict.REJECT, "user", HOSTILE)
    state = ScriptedSession(*runs.up_to_reflexion(), rejected).newest.state
    assert state.run is not None
    told = pull_request(state, [account_of(state.run, FILES)])
    for section in ("# T-1: ", "## What was done", "## Files", "## Checks", "## Decisions"):
        assert section in told
    assert "| `shop/cart.py` | +1 −1 |" in told
    assert "| `a\\|b.bin` | not text |" in told
    assert "no: \\<script\\>alert(1)\\</script\\> fixes \\#<!-- -->7 @<!-- -->ada \\`\\`\\`" in told
    assert f"`agent sessions verify {state.session}`" in told
    assert state.hash in told
    assert "Git does not have the files" in pull_request(state, [account_of(state.run, None)])


def test_json_holds_every_event_and_a_summary() -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    state = session.newest.state
    assert state.run is not None
    events = (*state.opening, *state.run.history)
    document = json.loads(json.dumps(session_document(state, events, [account_of(state.run, FILES)])))
    assert (document["format"], document["version"], document["session"]) == (FORMAT, VERSION, state.session)
    read = [decode_event(each["kind"], each["body"]) for each in document["events"]]
    assert read == [each.event for each in events]
    (task,) = document["tasks"]
    assert (task["task"], task["status"], task["files"][1]["added"]) == ("T-1", None, None)
    assert [each["paths"] for each in task["changes"]] == [["shop/cart.py"]]
