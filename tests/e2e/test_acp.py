"""`agent acp` as an editor sees it: real processes, the SDK's client, and a model that says a plan."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from acp import RequestError
from acp import schema as wire

from agent_workbench.system.command_bounds import COMMAND_MARK
from tests.e2e.acp_client import approve, editor
from tests.e2e.calc import CALC, GOOD, RIGHT, calc_repo, diff_step
from tests.e2e.machine import CHECKOUT, WAIT_SECONDS, Machine, bodies, journal_lines

CHECKED = {"AGENT_TEST_COMMAND": "python test_calc.py"}
WRONG = diff_step({"calc.py": CALC}, {"calc.py": CALC.replace("left - right", "left * right")})
TASK = "Make add() add in @calc.py"
# The SDK is slow to import: one worker of the tests does it.
pytestmark = [pytest.mark.xdist_group("mcp"), pytest.mark.slow]


async def test_a_prompt_becomes_a_task_whose_gates_are_asked_to_the_merge(served: Machine) -> None:
    repo = calc_repo(served)
    async with editor(served, repo, {"T-2": GOOD}, environ=CHECKED) as window:
        session = await window.new(repo)
        assert await window.prompt(session, TASK) == "end_turn"
        assert "I change it." in window.said("agent_thought_chunk")
        titles = [call.title for call, _ in window.asked]
        assert [str(title).split(":")[0] for title in titles[1:]] == ["diff", "commit", "fast-forward"]
        (diff,) = [each for each in window.asked[1][0].content or () if isinstance(each, wire.FileEditToolCallContent)]
        assert (diff.path, diff.old_text, diff.new_text) == (f"{repo}/calc.py", CALC, RIGHT)
        assert "diff of calc.py: always in this session" in [each.name for each in window.asked[1][1]]
        assert all(each.kind != "allow_always" for each in window.asked[-1][1])
        states = {each.tool_call_id: each.status for each in window.of_kind("tool_call_update") if each.status}
        assert set(states.values()) == {"completed"}
        assert window.of_kind("plan")[-1].entries[-1].status == "completed"
    assert (repo / "calc.py").read_text() == RIGHT
    decided = bodies(journal_lines(repo, session), "action_decided")
    assert [each["by"] for each in decided if not each["by"].startswith("policy:")] == ["acp:test editor"] * 3
    verified = served.agent("verify", "HEAD", cwd=repo)
    assert verified.code == 0, verified.said
    assert "acp:test editor" in verified.out


async def test_a_rejection_a_decision_elsewhere_and_the_death_of_the_editor(served: Machine) -> None:
    repo = calc_repo(served)
    never = asyncio.Event()

    async def answer(call: wire.ToolCallUpdate, options: list[wire.PermissionOption]) -> str | None:
        title = call.title or ""
        if title.startswith("diff") and "*" in str(call.content):
            return "no such option" if len(window.asked) == 2 else "explain"
        if title.startswith("commit"):
            await never.wait()
        return await approve(call, options)

    scripts = {"T-2": (WRONG, GOOD[1]), "T-2:0": GOOD[:1]}
    async with editor(served, repo, scripts, answer, environ=CHECKED, name="\x1b[31mEd\n it") as window:
        session = await window.new(repo)
        assert await window.prompt(session, TASK) == "cancelled"  # an answer that was not offered decides nothing
        assert "Nothing was decided" in window.said("agent_message_chunk")
        assert await window.prompt(session, "Ask me again") == "end_turn"
        assert window.said("agent_message_chunk").rstrip().endswith("the reason of the rejection.")
        working = asyncio.ensure_future(window.prompt(session, "It has to add."))
        await window.until(lambda: str(window.asked[-1][0].title).startswith("commit"))
        shown = await asyncio.to_thread(served.agent, "inbox", "show", session, cwd=repo)
        decided = await asyncio.to_thread(served.agent, "inbox", "approve", shown.out.splitlines()[-1], cwd=repo)
        assert decided.code == 0, decided.said
        assert await working == "end_turn"  # the question was withdrawn, and the merge was asked about
        with pytest.raises(RequestError, match="open here already"):
            await window.agent.load_session(cwd=str(repo), session_id=session, mcp_servers=[])
        # The editor dies: its pipes close, and nothing else is said.
    assert window.process.returncode == 0
    decisions = bodies(journal_lines(repo, session), "action_decided")
    (rejected,) = [each for each in decisions if each["verdict"] == "reject"]
    assert (rejected["by"], rejected["reason"]) == ("acp:31mEd it", "It has to add.")
    (elsewhere,) = [each for each in decisions if each.get("via")]
    assert (elsewhere["by"], elsewhere["verdict"]) == ("user", "approve")
    async with editor(served, repo, {}) as window:
        (listed,) = (await window.agent.list_sessions(cwd=str(repo))).sessions
        assert (listed.session_id, listed.title) == (session, "T-2 Make add() add in @calc.py · done")
        loads = (window.agent.load_session(cwd=str(repo), session_id=session, mcp_servers=[]) for _ in range(2))
        loaded = await asyncio.gather(*loads, return_exceptions=True)
        assert sum(isinstance(each, RequestError) for each in loaded) == 1, "one load at a time"
        assert "Make add() add in @calc.py" in window.said("user_message_chunk")
        assert "It has to add." in str([each.raw_output for each in window.of_kind("tool_call_update")])
        titles = [str(each.title).partition(":")[0] for each in window.of_kind("tool_call")]
        assert titles[:6] == ["checks", "diff", "diff", "checks", "commit", "fast-forward"]
        assert window.of_kind("plan")[-1].entries[-1].status == "completed"


async def test_a_chat_a_repository_without_trust_and_wrong_words(served: Machine) -> None:
    repo = calc_repo(served, {".agent.yml": "test_command: touch ran\n"})
    asked: list[str] = []
    never, closing = asyncio.Event(), asyncio.Event()

    async def answer(call: wire.ToolCallUpdate, options: list[wire.PermissionOption]) -> str | None:
        asked.append(str(call.title))
        if closing.is_set():
            await never.wait()
        return "no" if str(call.title).startswith("Trust") else await approve(call, options)

    async with editor(served, repo, {"chat:chat": ("Thought: Easy.\nAnswer: It *adds*.",)}, answer) as window:
        session = await window.new(repo)
        await window.agent.set_config_option(config_id="mode", session_id=session, value="chat")
        ended = await window.prompt(session, "What does @calc.py do?")
        assert ended == "end_turn", window.said("agent_message_chunk")
        assert [each for each in asked if each.startswith("Trust")]
        assert "touch ran" in window.said("agent_message_chunk")
        assert window.said("agent_thought_chunk").strip() == "Easy."
        assert window.said("agent_message_chunk").endswith("It *adds*.\n\n")
        with pytest.raises(RequestError, match="A chat begins in a thread of its own"):
            await window.agent.set_session_mode(mode_id="ask", session_id=session)
        other = await window.new(repo)
        await window.agent.set_session_mode(mode_id="accept_edits", session_id=other)
        assert await window.prompt(other, "tset") == "end_turn"
        assert "is one word, and no task" in window.said("agent_message_chunk")
        assert await window.prompt(other, "x " * 1_000_000) == "end_turn"
        assert "a task has at most 16,000" in window.said("agent_message_chunk")
        for cwd in ("relative", "/nowhere", "/proc"):
            with pytest.raises(RequestError):
                await window.agent.new_session(cwd=cwd, mcp_servers=[])
        with pytest.raises(RequestError, match="no session"):
            await window.prompt("../../etc", "What is this?")
        with pytest.raises(RequestError, match="is not a session id"):
            await window.agent.load_session(cwd=str(repo), session_id="../x", mcp_servers=[])
        await window.agent.close_session(session_id=session)
        closing.set()
        last, before = await window.new(repo), len(asked)
        working = asyncio.ensure_future(window.prompt(last, TASK))
        await window.until(lambda: len(asked) > before)
        await window.agent.close_session(session_id=last)
        assert await working == "cancelled"
    assert not (repo / "ran").exists()
    code, errors = await asyncio.to_thread(_unread, served, repo)
    assert (code, errors) == (0, b"")
    refused = served.agent("acp", cwd=repo, environ={COMMAND_MARK: "1"})
    assert (refused.code, refused.out) != (0, "")
    assert "a command that the agent runs cannot decide" in refused.err


async def test_a_task_begins_with_what_the_editor_did_not_save_if_the_user_says_so(served: Machine) -> None:
    repo = calc_repo(served)
    (repo / "notes.txt").write_text("mine")
    unsaved = CALC.replace("def add", "# unsaved\ndef add")
    right = unsaved.replace("left - right", "left + right")
    choice = {"answer": "with"}

    async def answer(call: wire.ToolCallUpdate, options: list[wire.PermissionOption]) -> str | None:
        if str(call.title).startswith("Begin with"):
            return choice["answer"] or None
        return await approve(call, options) if not str(call.title).startswith("fast-forward") else "skip"

    steps = (diff_step({"calc.py": unsaved}, {"calc.py": right}), GOOD[1])
    before = (repo / "calc.py").read_bytes(), served.git(repo, "rev-parse", "HEAD")
    async with editor(served, repo, {"T-2": steps, "T-3": GOOD}, answer, environ=CHECKED) as window:
        session = await window.new(repo)
        window.buffers[f"{repo}/calc.py"] = unsaved
        choice["answer"] = ""
        assert await window.prompt(session, TASK) == "end_turn"
        assert "The task was not started" in window.said("agent_message_chunk")
        choice["answer"] = "with"
        assert await window.prompt(session, TASK) == "end_turn"
        (asked, again) = [str(call.content) for call, _ in window.asked if str(call.title).startswith("Begin")]
        assert asked == again
        assert "Not saved in the editor: calc.py" in asked
        assert "Not tracked by git: notes.txt" in asked
        assert "memory/" not in asked
        branch = served.git(repo, "show", "agent/T-2:calc.py")
        assert branch == right.rstrip("\n")
        base = served.git(repo, "rev-parse", "agent/T-2~1")
        assert served.git(repo, "diff", "--name-only", "HEAD", base).split() == ["calc.py", "notes.txt"]
        assert (before, served.git(repo, "status", "--short", "calc.py")) == (
            ((repo / "calc.py").read_bytes(), served.git(repo, "rev-parse", "HEAD")),
            "",
        )
        choice["answer"] = "without"
        other = await window.new(repo)
        assert await window.prompt(other, TASK) == "end_turn"
        assert served.git(repo, "show", "agent/T-3:calc.py") == RIGHT.rstrip("\n")
        assert served.git(repo, "rev-parse", "agent/T-3~1") == before[1]


def _unread(served: Machine, repo: Path) -> tuple[int, bytes]:
    """Return exit code and errors of an agent whose client reads nothing and says nonsense."""
    command = [sys.executable, "-P", "-m", "agent_workbench", "acp"]
    environ = {**served.environ, "PYTHONPATH": str(CHECKOUT / "src")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=repo, env=environ, stdin=pipe, stdout=pipe, stderr=pipe) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert agent.stderr is not None
        agent.stdout.close()
        agent.stdin.write(b"no message\n")
        agent.stdin.flush()  # it stays open: what ends the agent is that nobody reads its answer
        return agent.wait(WAIT_SECONDS), agent.stderr.read()
