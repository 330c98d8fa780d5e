"""A process that waits for the end of its parent."""

import subprocess
import sys

import psutil

from tests.e2e.machine import SURVIVAL_SECONDS

WAIT = "import asyncio; from agent_workbench.system.parent_process import parent_gone; print(1, flush=True); "


def test_a_process_notices_that_its_parent_was_killed() -> None:
    waiting = f"{WAIT}asyncio.run(parent_gone())"
    with subprocess.Popen(
        ["/bin/sh", "-c", '"$@" & wait', "sh", sys.executable, "-P", "-c", waiting], stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        (child,) = psutil.Process(shell.pid).children()
        shell.kill()
        # Its end of the pipe is closed with it.
        assert shell.stdout.read() == b""
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE or not child.wait(SURVIVAL_SECONDS)
