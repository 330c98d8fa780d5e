"""Eight sessions of one process at work at once, each on its own task, with one server for their model file."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_workbench.adapters.demo import SCRIPTS
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.set_up import write_demo
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import Recorded, SessionLeft, SessionStarted, TaskCommitted
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import StartTask
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest, Unattended
from tests.e2e.test_tabs import model_servers

pytestmark = pytest.mark.slow

TASKS = tuple(TaskId(f"T-{number}") for number in range(1, 9))
POLICY = {f"approvals.{kind}": "auto" for kind in ("diff", "check", "command", "commit")}
PLAN = "version: 1\ntasks:\n" + "".join(
    f"  - {{id: {task}, description: Count quantities in the total, "
    "accept_tests: [python -m unittest tests/test_cart.py]}\n"
    for task in TASKS
)


async def read_all(session: SessionHandle) -> Sequence[Recorded]:
    return [recorded async for recorded in session.events()]


def scripts_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each task the answers of the demo's first one."""
    for subject, texts in tuple(SCRIPTS.items()):
        if subject.startswith("T-1"):
            for task in TASKS[1:]:
                monkeypatch.setitem(SCRIPTS, subject.replace("T-1", task), texts)


@pytest.mark.xdist_group("llama")
async def test_eight_sessions_work_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    repo = tmp_path / "shop"
    invocation = await write_demo(repo, Invocation(repo, dict(os.environ), POLICY, unconfined=True))
    await asyncio.to_thread((repo / "memory" / "plans" / "PLAN.yaml").write_text, PLAN)
    scripts_for_all(monkeypatch)
    others = await asyncio.to_thread(model_servers)
    async with LocalSessionHost(invocation) as host:
        requests = (SessionRequest(OpenMode.NEW, unattended=Unattended((task,))) for task in TASKS)
        sessions = await asyncio.gather(*map(host.open, requests))
        reading = [asyncio.create_task(read_all(session)) for session in sessions]
        refused = await sessions[0].submit(StartTask(TASKS[1]))
        assert isinstance(refused, Refused)
        ends = [await session.wait() for session in sessions]
        histories = await asyncio.gather(*reading)
    assert [end.exit_code for end in ends] == [ExitCode.DONE] * len(TASKS)
    assert [end.outcomes[0].task for end in ends] == list(TASKS)
    assert len({session.session for session in sessions}) == len(TASKS)
    for history in histories:
        assert [recorded.seq for recorded in history] == list(range(len(history)))
        assert isinstance(history[0].event, SessionStarted)
        assert isinstance(history[-1].event, SessionLeft)
        assert sum(isinstance(recorded.event, TaskCommitted) for recorded in history) == 1
    assert await asyncio.to_thread(model_servers) == others, "the server they shared ended with the last of them"


async def test_the_sessions_of_a_host_share_the_server_of_a_model_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    repo = tmp_path / "shop"
    invocation = await write_demo(repo, Invocation(repo, dict(os.environ), {}, unconfined=True))
    others = await asyncio.to_thread(model_servers)
    async with LocalSessionHost(invocation) as host:
        sessions = [await host.open(SessionRequest(OpenMode.NEW)) for _ in range(8)]
        for session in sessions:
            async for update in session.live():
                if update.state.model is not None:
                    break
        assert await asyncio.to_thread(model_servers) == others + 1
        assert len({session.session for session in sessions}) == len(sessions)
    assert not host.has_sessions
    assert await asyncio.to_thread(model_servers) == others
