"""A host follows a session that another process writes."""

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

from agent_workbench.api.sessions.session_host import open_host
from agent_workbench.core.ids import SessionId
from tests.adapters.git.user import make_repo
from tests.faults import journal_child

SESSION = SessionId("20260102T030405-abc234")


async def test_the_events_of_another_process_are_yielded_as_they_come(tmp_path: Path) -> None:
    user = await asyncio.to_thread(make_repo, tmp_path / "repo", {"a.txt": "a\n"})
    directory = user.root / "memory" / "sessions" / SESSION
    command = [sys.executable, journal_child.__file__, "write", str(directory)]
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            await asyncio.to_thread(child.stdout.readline)
            async with (
                asyncio.timeout(20),
                open_host(user.root, environ=environ) as host,
                aclosing(host.follow(SESSION, after_seq=4)) as events,
            ):
                found = [await anext(events) for _ in range(5)]
        finally:
            child.kill()
    assert [(each.seq, each.event) for each in found] == [(seq, journal_child.event(seq)) for seq in range(5, 10)]
