"""What a command may take of the machine: it is stopped with a message, and whoever started it lives."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.settings import SandboxSettings
from agent_workbench.system.processes import ResourceLimits
from tests.adapters.shell.conftest import Bench, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="machine lacks: /proc")
MEGABYTE = 1 << 20

# Doubles until it may no more: it would not end, but were it not stopped it would not take the machine with it.
FORKS = """
import os, time
for _ in range(9):
    if os.fork() == 0 and {apart}:
        os.setsid()
time.sleep(300)
"""
# Says that it is there, and forks when it is told to.
LATER = """
import os, time
open('here', 'w').close()
while not os.path.exists('go'):
    time.sleep(0.01)
for _ in range(130):
    if os.fork() == 0:
        break
time.sleep(300)
"""
# Ends with its children when its standard input does.
OTHERS = """
import os, sys
children = []
for _ in range(300):
    child = os.fork()
    if child == 0:
        sys.stdin.read()
        os._exit(0)
    children.append(child)
print('here', flush=True)
for child in children:
    os.waitpid(child, 0)
"""
TAKES = "import time; held = [bytearray(b'x' * (1 << 20)) for _ in range(400)]; time.sleep(300)"
SHARES = "import time; open('/dev/shm/agent-limit', 'wb').write(b'x' * (400 << 20)); time.sleep(300)"
# 64 GiB, private and never written to; 0x4000 is MAP_NORESERVE, which `mmap` does not name.
RESERVES = "import mmap; held = mmap.mmap(-1, 1 << 36, flags=mmap.MAP_PRIVATE | 0x4000); print('reserved')"
WRITES = """
import time
with open('big', 'wb') as file:
    while True:
        file.write(b"x" * 65536)
        file.flush()
        time.sleep(0.001)
"""


def limited(bench: Bench, limits: ResourceLimits) -> Bench:
    parent = {"PATH": "/nonexistent/bin", "HOME": "/"} if bench.environment else dict(os.environ)
    bench.shell = SandboxedShell(SandboxSettings(), str(bench.folder.parent), parent, limits=limits)
    return bench


def left_in(folder: Path) -> list[str]:
    """Return the processes that work in the folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cwd"):
        try:
            found += [each.parent.name] if each.readlink() == folder else []
        except OSError:
            continue
    return found


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("apart", [False, True])
async def test_processes(apart: bool, bench: Bench) -> None:
    (bench.folder / "forks.py").write_text(FORKS.format(apart=apart))
    outcome = await limited(bench, ResourceLimits(processes=100)).run(f"{sys.executable} -S forks.py", seconds=60)
    assert (outcome.exit_code, outcome.reason) == (None, "stopped: it had more than 100 processes and threads")
    assert outcome.seconds < 30
    assert left_in(bench.folder) == []


async def test_processes_that_others_hide_by_their_end(bench: Bench) -> None:
    (bench.folder / "later.py").write_text(LATER)
    limits = ResourceLimits(processes=100)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", OTHERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as others:
        assert others.stdout is not None
        assert others.stdout.readline() == b"here\n"
        running = asyncio.create_task(limited(bench, limits).run(f"{sys.executable} -S later.py", seconds=60))
        await until((bench.folder / "here").exists, 30)
        await asyncio.to_thread(others.communicate)
    (bench.folder / "go").touch()
    outcome = await running
    assert (outcome.exit_code, outcome.reason) == (None, "stopped: it had more than 100 processes and threads")
    assert left_in(bench.folder) == []


async def test_the_kernel_holds_the_number_of_processes_too(bench: Bench) -> None:
    asked = "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[0])"
    before = running_tasks()
    outcome = await limited(bench, ResourceLimits(processes=800)).run(f'{sys.executable} -S -c "{asked}"', seconds=60)
    seen = (before, running_tasks())
    # Above what the machine runs, which changes meanwhile, by an eighth more than the watch allows.
    assert min(seen) // 2 + 900 <= int(outcome.output) <= 2 * max(seen) + 900


def running_tasks() -> int:
    """Return the number of processes and threads of the machine."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


async def test_memory(bench: Bench) -> None:
    limits = ResourceLimits(memory_bytes=200 * MEGABYTE)
    outcome = await limited(bench, limits).run(f'{sys.executable} -S -c "{TAKES}"', seconds=60)
    assert outcome.exit_code is None
    assert outcome.reason.startswith("stopped: it took ")
    assert outcome.reason.endswith(" of memory, 200 MiB are allowed")


async def test_a_file_system_of_memory_is_memory(confined: Bench) -> None:
    limits = ResourceLimits(memory_bytes=200 * MEGABYTE)
    outcome = await limited(confined, limits).run(f'{sys.executable} -S -c "{SHARES}"', seconds=60)
    assert outcome.reason.endswith(" of memory, 200 MiB are allowed")


async def test_address_space_that_is_only_reserved_is_no_memory(bench: Bench) -> None:
    limits = ResourceLimits(memory_bytes=200 * MEGABYTE)
    outcome = await limited(bench, limits).run(f'{sys.executable} -S -c "{RESERVES}"', seconds=60)
    assert (outcome.exit_code, outcome.output) == (0, "reserved\n")


@pytest.fixture
def small_disk(bench: Bench) -> Iterator[Bench]:
    """The command's folder on a disk of its own."""
    argv = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(bench.folder)]
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("machine lacks: the right to mount")
    yield bench
    subprocess.run(["umount", "--lazy", str(bench.folder)], check=True)


async def test_the_disk(small_disk: Bench) -> None:
    limits = ResourceLimits(disk_left_bytes=48 * MEGABYTE)
    (small_disk.folder / "writes.py").write_text(WRITES)
    outcome = await limited(small_disk, limits).run(f"{sys.executable} -S writes.py", seconds=60)
    assert outcome.exit_code is None
    assert outcome.reason.startswith("stopped: it wrote until ")
    free = os.statvfs(small_disk.folder)
    assert free.f_bavail * free.f_frsize > 0, "there is space for the journal"


async def test_an_ordinary_command_is_left_alone(bench: Bench) -> None:
    outcome = await bench.run("for i in 1 2 3 4 5 6 7 8; do sleep 0.3 & done; wait; echo done")
    assert (outcome.exit_code, outcome.output, outcome.reason) == (0, "done\n", "")
