"""Two sessions of one window at work at the same time, with one server that really answers both."""

import asyncio
import os
import re
from pathlib import Path

import psutil
import pytest

from agent_workbench.adapters.demo import SCRIPTS
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.set_up import write_demo
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import Leave, StartTask
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest
from agent_workbench.core.settings import Permission
from tests.engine.front import Front

pytestmark = pytest.mark.slow

OPEN = {f"AGENT_APPROVALS__{kind}": "auto" for kind in ("DIFF", "CHECK", "COMMAND")} | {
    "AGENT_UI__REVIEW_CONTEXT": "false"
}


def model_servers() -> int:
    """Return how many servers of models this process has."""
    lines = [process.cmdline() for process in psutil.Process().children(recursive=True)]
    # Each is started by a supervisor, whose own line says so too.
    return sum("agent_workbench.adapters.llama_cpp.xllamacpp_server" in line and "-m" in line[:4] for line in lines)


async def test_two_sessions_commit_each_on_its_branch_with_one_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    repo = tmp_path / "shop"
    invocation = await write_demo(repo, Invocation(repo, {**os.environ, **OPEN}, {}, unconfined=True))

    def make_independent() -> None:
        plan = repo / "memory" / "plans" / "PLAN.yaml"
        # The second task is done as the first one is, beside it and not after it.
        needs = r" +- python -m unittest tests/test_discount.py.*\n| +depends_on: .*\n"
        plan.write_text(re.sub(needs, "", plan.read_text()))

    await asyncio.to_thread(make_independent)
    for subject, texts in tuple(SCRIPTS.items()):
        if subject.startswith("T-1"):
            monkeypatch.setitem(SCRIPTS, subject.replace("T-1", "T-2"), texts)
    others = await asyncio.to_thread(model_servers)  # those that other tests share
    host = LocalSessionHost(invocation)
    first = Front(await host.open(SessionRequest()))
    await first.until(lambda it: it.state.plan.tasks)
    await first.submit(StartTask(None))
    await first.until(lambda it: it.state.run)
    second = Front(await host.open(SessionRequest(OpenMode.NEW)))
    opened = await second.until(lambda it: it.state.plan.tasks and it.live.taken)
    assert opened.live.taken == (TaskId("T-1"),)
    await second.submit(StartTask(None))
    await asyncio.gather(first.gate(Permission.COMMIT), second.gate(Permission.COMMIT))
    assert await asyncio.to_thread(model_servers) == others + 1
    for front in (second, first):
        await front.approve(Permission.COMMIT)
        await front.skip(Permission.MERGE)
        await front.submit(Leave("left by the user"))
        last = await front.until(lambda it: it.ended)
        assert last.state.run is not None
        assert last.state.run.status is TaskStatus.DONE
        assert await asyncio.to_thread(model_servers) == others + int(front is second)
    await host.join()
    host.raise_if_none_opened()
    branches = [f"agent/{task}" for task in ("T-1", "T-2")]
    command = ("git", "-C", str(repo), "rev-parse", *(f"{branch}~1" for branch in branches), "main")
    made = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await made.communicate()
    assert len(set(out.split())) == 1
    assert len(out.split()) == 3
