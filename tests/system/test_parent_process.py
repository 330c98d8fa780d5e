"""A process that waits for the end of its parent."""

import subprocess
import sys

WAIT = """
import asyncio, os
from agent_workbench.system.processes import parent_gone
parent = os.getppid()
print(1, flush=True)
asyncio.run(parent_gone(parent))
"""


def test_a_process_notices_that_its_parent_was_killed() -> None:
    with subprocess.Popen(
        ["/bin/sh", "-c", '"$@" & wait', "sh", sys.executable, "-P", "-c", WAIT], stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        shell.kill()
        assert shell.stdout.read() == b""  # the pipe is open as long as the process lives
