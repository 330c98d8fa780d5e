"""A process that waits for the end of its parent."""

import subprocess
import sys

WAIT = "import asyncio; from agent_workbench.system.parent_process import parent_gone; print(1, flush=True); "


def test_a_process_notices_that_its_parent_was_killed() -> None:
    waiting = f"{WAIT}asyncio.run(parent_gone())"
    with subprocess.Popen(
        ["/bin/sh", "-c", '"$@" & wait', "sh", sys.executable, "-P", "-c", waiting], stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        shell.kill()
        assert shell.stdout.read() == b""  # the pipe is open as long as the process lives
