"""Foreign text never controls the terminal, never acts as markup, never presses a key: read back from a real pty."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Static

from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    Author,
    ChatReplied,
    ChatStarted,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    EndpointPassed,
    Event,
    GrammarIgnored,
    ModelAnswered,
    ModelObserved,
    PlanAnswered,
    PlanAsked,
    PlanPrompted,
    PlanRead,
    PlanRejected,
    PlanSurveyed,
    PromptBuilt,
    PromptPart,
    ReflexionNoted,
    ScratchpadChanged,
    TaskRolledBack,
    TestsFinished,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.live import Live, Notice, PreflightQuestion, Running, Streaming
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.plan import Plan, Task
from agent_workbench.core.proposal_kinds import PlanProposal
from agent_workbench.core.proposals import PROPOSE_PLAN
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Permission
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, Driver, driving

OSC52 = "\x1b]52;c;SEFDS0VE\x07"
TITLE = "\x1b]0;HACKED\x07"
CSI = "\x1b[2J\x1b[31m"
C1 = "\x9b31m\x9d0;HACKED\x9c"
LINK = "\x1b]8;;http://evil.example\x1b\\"
MARKUP = "[@click=app.approve]press[/] [/foo] [red]x[/red] [link=http://evil.example]y[/link]"
BAD = f"{OSC52}{TITLE}{CSI}{C1}{LINK}{MARKUP}\u202egnp.exe\ud800\x00"
DIFF = f"--- a/x{BAD}.py\n+++ b/x.py\n@@ -0,0 +1 @@ {BAD}\n+{BAD}\n"


def foreign() -> tuple[Event, ...]:
    """Return a session in which everything that is foreign is as bad as can be."""
    task = replace(runs.TASK_1, description=BAD, goal=BAD, accept_tests=(BAD,), source=BAD)
    failed = CheckResult(BAD, 1, BAD, 0.1, (BAD,))
    proposal = runs.proposed(
        Permission.DIFF, "write_diff", "P-9", DIFF, diff=DIFF, paths=(BAD,), special=(BAD,), repaired=(BAD,)
    )
    chunk = Chunk(BAD, 1, 1, BAD, 1.0, BAD, (BAD,), 3)
    return (
        *runs.opening(),
        ModelObserved(ModelFacts(BAD, BAD, 4096, off=(BAD,))),
        EndpointPassed(Purpose.EXECUTOR, BAD, BAD),
        GrammarIgnored(BAD, 1, BAD),
        PlanRead(BAD, Plan((task,), BAD)),
        *runs.started(),
        CodeRetrieved(BAD, (chunk,)),
        ChunkPinned(chunk),
        ChunkDropped(BAD),
        ScratchpadChanged(runs.T1, BAD, Author.MODEL),
        *runs.answered(1, f"Thought: {BAD}\nAction: {BAD}\n{BAD}"),
        *runs.answered(2, f"Thought: {BAD}\nAction: read_file\n{BAD}"),
        PromptBuilt(2, Purpose.EXECUTOR, 3, 900, BAD, (PromptPart(f"code {BAD}", 40), PromptPart(BAD, 3)), BAD),
        ModelAnswered(2, f"Thought: {BAD}", AnswerFigures(900, 0, 3), BAD, BAD, BAD),
        ActionRejected(2, BAD),
        UserSaid(BAD),
        ContextCompacted(2, BAD, Author.MODEL, 3, (chunk,), BAD, BAD),
        ReflexionNoted(2, BAD),
        TestsFinished(CheckPurpose.ASKED, (failed,), (BAD,), (BAD,)),
        ActionFinished(proposal.id, ActionResult.FAILED, BAD),
        TaskRolledBack(runs.T1, runs.BASE, BAD),
        ActionProposed(proposal),
    )


def foreign_plan() -> tuple[Event, ...]:
    """Return a session in which a model has written a plan that is as bad as can be."""
    chunk = Chunk(BAD, 1, 1, BAD, 1.0, BAD, (BAD,), 3)
    task = Task(TaskId("T-9"), BAD, BAD, BAD, (BAD,), depends_on=(TaskId("T-8"),))
    plan = ProposedPlan(BAD, (ProposedTask(Task(TaskId("T-8"), BAD), taken=False), ProposedTask(task)))
    return (
        *runs.opening(),
        PlanAsked(BAD, 1),
        PlanSurveyed((chunk,), (chunk,), (BAD,), (BAD,)),
        PlanPrompted(1, 3, BAD, BAD),
        PlanAnswered(1, BAD, AnswerFigures(), BAD, BAD, BAD),
        PlanRejected(1, BAD),
        PlanAnswered(2, BAD, AnswerFigures(), stopped=BAD),
        ActionProposed(PlanProposal(ProposalId("P-9"), PROPOSE_PLAN, BAD, 1, paths=(BAD,), special=(BAD,), plan=plan)),
    )


def foreign_chat() -> tuple[Event, ...]:
    """Return a chat whose reply is Markdown that is as bad as can be."""
    reply = f"# {BAD}\n- {BAD}\n- [@click=app.approve]press[/]\n\n[{BAD}](http://evil.example)\n\n```{BAD}\n{BAD}\n```\n|{BAD}|\n|-|\n|{BAD}|\n"
    return (
        *(*runs.opening(), ChatStarted(2), UserSaid(BAD), CodeRetrieved(BAD, (Chunk(BAD, 1, 1, BAD, 1.0),))),
        *(PromptBuilt(1, Purpose.CHAT, 2, 10, BAD), ChatReplied(1, reply)),
    )


LIVES = {
    "waiting": Live(),
    "thinking": Live(activity=BAD, streaming=Streaming(thought=BAD)),
    "streaming": Live(activity=BAD, streaming=Streaming(f"Thought: {BAD}", 1, 1.0)),
    "diff": Live(activity="x", streaming=Streaming(f"Thought: x\nAction: write_diff\n{DIFF}", 1, 1.0)),
    "running": Live(activity=BAD, running=Running(BAD, BAD, 1.0)),
    "notice": Live(notices=(Notice(1, BAD),)),
    "question": Live(question=PreflightQuestion("trust", BAD, (BAD,), BAD, BAD)),
}


def session_of(case: str) -> ScriptedSession:
    if case == "plan":
        return ScriptedSession(*foreign_plan())
    if case == "planning":
        return ScriptedSession(*foreign_plan()[:-1]).show(Live(activity=BAD, streaming=Streaming(BAD, 1, 1.0)))
    if case == "chat":
        return ScriptedSession(*foreign_chat())
    events = foreign() if case in ("waiting", "notice", "question") else foreign()[:-1]
    if case == "trouble":
        return ScriptedSession(*foreign()[:-1], TroubleMet(BAD, BAD, BAD))
    session = ScriptedSession(*events).show(LIVES.get(case, Live()))
    return session.as_replay() if case == "replay" else session


CASES = (*LIVES, "trouble", "replay", "plan", "planning", "chat")


def what_acts(bench: Driver) -> list[str]:
    """Return all on screen that does something when it is clicked, or leads elsewhere."""
    segments = [segment for strip in bench.screen._compositor.render_strips() for segment in strip]
    return [text for text, style, _ in segments if style and ("@click" in style.meta or style.link)]


async def test_markup_that_acts_would_be_found() -> None:
    async with driving(ScriptedSession(), SMALL) as bench:
        assert what_acts(bench) == []
        await bench.screen.mount(Static("[@click=app.approve]press[/]"))
        assert "press" in what_acts(await bench.idle())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow(quick=2)
async def test_nothing_foreign_acts_in_any_pane(case: str) -> None:
    async with driving(session_of(case), LARGE) as bench:
        shown = bench.text()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", shown)
        assert "[@click=app.approve]" in shown
        if case in ("waiting", "replay", "trouble"):
            for key in "123456789":
                await bench.press(key)
        assert what_acts(bench) == []
        if case == "waiting":
            places = [(line.find("press[/]"), y) for y, line in enumerate(bench.text().split("\n"))]
            for place in [place for place in places if place[0] >= 0][:3]:
                await bench.pilot.click(offset=place)
        assert bench.session.intents == [] or case == "replay"
        assert bench.app.return_value is None


async def test_a_line_is_guarded_once_and_kept() -> None:
    async with driving(ScriptedSession()) as bench:
        assert bench.app.get_line_filters() == bench.app.get_line_filters()


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("keys", [("c",), ("2", "g", "o"), ("5", "j", "enter"), (":", "x", "enter")])
async def test_nothing_foreign_acts_in_receipts_and_unfolded_entries(keys: tuple[str, ...]) -> None:
    async with driving(session_of("waiting"), LARGE) as bench:
        await bench.press(*keys)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", bench.text())
        assert "[@click=app.approve]" in bench.text()


async def test_an_editor_shows_foreign_text_without_letting_it_through() -> None:
    async with driving(session_of("waiting"), LARGE) as bench:
        await bench.press("e")
        assert bench.screen.name == "edit"
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", bench.text())


PROGRAM = """
import asyncio, sys
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.core.session_request import SessionRequest
from tests.fakes.scripted_session import FakeClock, ScriptedHost
from tests.tui.test_inert import session_of
session = session_of(sys.argv[1])
app = WorkbenchApp(ScriptedHost(session), SessionRequest(), clock=FakeClock())
async def end():
    while app.update_shown is not session.newest:
        await asyncio.sleep(0.02)
    for key in ("2", "z", "o", "3", "5", "j", "enter", "1", "c", "j", "[", "c"):
        app.simulate_key(key)
        await asyncio.sleep(0.1)
    session.end()
async def main():
    task = asyncio.create_task(end())
    await app.run_async()
    await task
asyncio.run(main())
"""
POINTER = b"\x1b]22;default\x07"
ALLOWED = re.compile(
    rb"\x1b\[[0-9;:?<>=$ ]*[A-Za-z]"  # what Textual itself writes: cursor, colours, modes
    rb"|\x1b\[\?[0-9;]*\$p|\x1b[78=>]|\x1b\(B|\x1bP\+q[0-9a-fA-F]*\x1b\\"
)


async def read_from_pty(case: str) -> bytes:
    """Run the workbench on a pseudo terminal and return every byte that it wrote."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, case], stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    written = bytearray()
    loop = asyncio.get_running_loop()
    closed = loop.create_future()

    def read() -> None:
        try:
            data = os.read(master, 65536)
        except OSError:
            data = b""
        written.extend(data)
        if not data and not closed.done():
            loop.remove_reader(master)
            closed.set_result(None)

    loop.add_reader(master, read)
    try:
        await asyncio.wait_for(closed, 60)
    finally:
        loop.remove_reader(master)
        process.kill()
        process.wait()
        os.close(master)
    return bytes(written)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["waiting", "diff", "running", "trouble", "chat"])
async def test_nothing_foreign_reaches_a_real_terminal(case: str) -> None:
    written = await read_from_pty(case)
    text = written.decode("utf-8")
    assert "[@click=app.approve]" in text
    written = written.replace(POINTER, b"")
    assert b"\x1b]" not in written  # no OSC but Textual's pointer shape: no clipboard, no title, no link
    assert b"\x07" not in written
    rest = ALLOWED.sub(b"", written)
    assert b"\x1b" not in rest, rest[max(0, rest.find(b"\x1b") - 40) : rest.find(b"\x1b") + 40]
    assert not re.search("[\x80-\x9f\u202e]", text)
    assert "\x1b[31m" not in text
