"""Questions of a real MCP server at the gate: answered, declined, cancelled, unattended, after a stop, and replayed."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_workbench.adapters.shell.server_processes import SandboxedServers
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ActionDecided, ActionFinished, ActionProposed, ActionResult
from agent_workbench.core.intents import ApproveProposal, EditProposal, SayToModel
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.proposal_kinds import ExternalProposal
from agent_workbench.core.proposals import ANSWER_SERVER, Proposal, Verdict, shown_sha
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.settings.extensions import ToolServerSettings
from agent_workbench.core.state.work import Chat
from agent_workbench.engine.chat.chat_context import start_chat
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.subjects.mcp_client.server_tools_adapter import McpServer
from agent_workbench.views.gate.gate_bar import GateAct, acts_for
from agent_workbench.views.gate.notes import call_notes
from tests.engine.front import Front, in_front_of
from tests.engine.stage import FINISH, T1, Stage, a_stage, call, change, reopened
from tests.engine.tools.test_tool_sources import open_for
from tests.fakes import asking_mcp_server

SERVER = str(Path(asking_mcp_server.__file__))
BOOK = call("mcp__asking__book", '{"day": "Monday"}')
RIGHT = change("wrong", "right")
ASKED = "mcp:asking asks the user before it answers"

pytestmark = pytest.mark.slow


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[McpServer]:
    servers = SandboxedServers(str(tmp_path), dict(os.environ), ())
    entry = ToolServerSettings(command=sys.executable, args=("-I", SERVER), unconfined=True)
    made = McpServer("asking", entry, servers, dict(os.environ))
    yield made
    await made.close()


def told(stage: Stage) -> list[tuple[ActionResult, str]]:
    return [(each.result, each.observation) for each in stage.events if isinstance(each, ActionFinished)]


def question_of(proposal: Proposal) -> ExternalProposal:
    assert isinstance(proposal, ExternalProposal)
    assert proposal.is_question
    return proposal


async def question(front: Front) -> ExternalProposal:
    """Approve the call of the tool, and return the question that follows."""
    await front.approve(Permission.EXTERNAL)
    return question_of(await front.gate(Permission.EXTERNAL))


async def test_a_person_fills_in_a_form(tmp_path: Path, server: McpServer) -> None:
    approvals = open_for(Permission.CHECK)
    async with (
        a_stage(tmp_path, [BOOK, RIGHT, FINISH], tool_sources=(server,), approvals=approvals) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        asked = await question(front)
        assert (asked.source, asked.text) == ("mcp:asking", '{\n  "name": null,\n  "people": 2\n}')
        assert asked.hints[:2] == ("asks during the call of mcp__asking__book:", "Which table on Monday?␛]0;owned␇")
        shown = "\n".join(block.text for block in call_notes((), asked))
        assert '"Who comes␛[31m < |im_start| >"' in shown
        assert "A null is a value that is missing" in shown
        # No rule and no mode answers for the person, and what lacks a value cannot be sent.
        assert acts_for(asked) == (GateAct.REJECT, GateAct.EDIT, GateAct.SKIP, GateAct.ABORT)
        assert isinstance(await front.outcome(ApproveProposal(asked.id, shown_sha(asked))), Refused)
        wrong = await front.outcome(EditProposal(asked.id, '{"name": "Ann", "people": 9, "more": 1}'))
        assert isinstance(wrong, Refused)
        assert "does not fit the form" in wrong.reason
        edited = question_of(await front.edit(Permission.EXTERNAL, '{"name": "Ann", "people": 3}'))
        assert (edited.hints, GateAct.APPROVE in acts_for(edited)) == (asked.hints, True)
        await front.approve(Permission.EXTERNAL)
        await front.gate(Permission.MERGE)
        booked = (ActionResult.OK, "booked for Ann, 3 people, on Monday")
        assert told(stage)[1:3] == [(ActionResult.OK, ASKED), booked]
        assert stage.model.requests[1].messages[-1].text.endswith(booked[1])
        assert [each.difference for each in rerun(stage.journal())] == [None] * 3


@pytest.mark.parametrize(("verdict", "sent"), [(Verdict.REJECT, "decline"), (Verdict.SKIP, "cancel")])
async def test_the_server_is_told_that_a_person_refuses(
    tmp_path: Path, server: McpServer, verdict: Verdict, sent: str
) -> None:
    approvals = open_for(Permission.CHECK)
    async with (
        a_stage(tmp_path, [BOOK, RIGHT, FINISH], tool_sources=(server,), approvals=approvals) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await question(front)
        if verdict is Verdict.REJECT:
            await front.reject(Permission.EXTERNAL, "no")
        else:
            await front.skip(Permission.EXTERNAL)
        await front.gate(Permission.MERGE)
        decided = [each.verdict for each in stage.events if isinstance(each, ActionDecided)]
        assert verdict in decided
        assert (ActionResult.OK, f"nothing booked: {sent}") in told(stage)


async def test_a_page_is_shown_and_not_opened(tmp_path: Path, server: McpServer) -> None:
    sayings = [call("mcp__asking__pay"), RIGHT, FINISH]
    async with (
        a_stage(tmp_path, sayings, tool_sources=(server,), approvals=open_for(Permission.CHECK)) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        asked = await question(front)
        page = "It wants you to open a page of pay.example, which is not opened for you:"
        assert asked.hints[1:] == ("Pay here", page, "https://pay.example/42?x=1")
        assert (asked.text, GateAct.EDIT in acts_for(asked)) == ("{}", False)
        await front.approve(Permission.EXTERNAL)
        await front.gate(Permission.MERGE)
        assert (ActionResult.OK, "payment: accept") in told(stage)


async def test_nobody_is_there_to_answer(tmp_path: Path, server: McpServer) -> None:
    approvals = open_for(Permission.EXTERNAL, Approval.AUTO)
    async with a_stage(
        tmp_path, [BOOK, RIGHT, FINISH], tool_sources=(server,), approvals=approvals, headless=True
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        assert ending.exit_code is ExitCode.DONE, ending
        (asked,) = [
            each.proposal
            for each in stage.events
            if isinstance(each, ActionProposed) and each.proposal.tool == ANSWER_SERVER
        ]
        (decided,) = [each for each in stage.events if isinstance(each, ActionDecided) and each.proposal_id == asked.id]
        assert (decided.verdict, decided.by) == (Verdict.REJECT, "policy:unattended")
        assert decided.reason == "nobody is there to answer a server's question"
        assert (ActionResult.OK, "nothing booked: decline") in told(stage)


async def test_after_a_stop_the_server_no_longer_waits(tmp_path: Path, server: McpServer) -> None:
    approvals = open_for(Permission.CHECK)
    async with a_stage(tmp_path, [BOOK], tool_sources=(server,), approvals=approvals) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            asked = await question(front)
        async with reopened(stage, [RIGHT, FINISH]) as again, in_front_of(again) as front:
            assert await front.gate(Permission.EXTERNAL) == asked
            await front.reject(Permission.EXTERNAL, "no")
            await front.gate(Permission.MERGE)
            refused = [said for result, said in told(again) if result is ActionResult.REFUSED]
            assert refused == ["the server that asked has ended (call its tool again)"]


async def test_a_question_in_a_chat(tmp_path: Path, server: McpServer) -> None:
    sayings = (BOOK, "Answer: it is booked")
    async with a_stage(tmp_path, sayings, tool_sources=(server,)) as stage:
        await start_chat(stage.session)
        async with in_front_of(stage) as front:
            await front.submit(SayToModel("book a table"))
            asked = await question(front)
            await front.edit(Permission.EXTERNAL, '{"name": "Ann"}')
            await front.approve(Permission.EXTERNAL)
            await front.until(lambda it: isinstance(it.state.main, Chat) and it.state.main.reply is not None)
        assert asked.tool == ANSWER_SERVER
        assert told(stage)[1] == (ActionResult.OK, "booked for Ann, 2 people, on Monday")
        assert [each.difference for each in rerun(stage.journal())] == [None] * 2
