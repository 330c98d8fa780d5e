"""What a command must not be able to do. Each attack is also made without a sandbox, where it has to succeed."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_workbench.core.settings import SandboxSettings
from tests.adapters.shell.conftest import Bench, MakeBench, until

PRECIOUS = "precious"

# Each is a Python program; `outside` is a folder of the host, `work` the command's own.
WRITES = {
    "overwrite": "open(outside + '/file', 'w').write('spoilt')",
    "append": "open(outside + '/file', 'a').write('spoilt')",
    "create": "open(outside + '/new', 'w').write('spoilt')",
    "delete": "os.remove(outside + '/file')",
    "move away": "os.rename(outside + '/file', outside + '/moved')",
    "chmod": "os.chmod(outside + '/file', 0o777)",
    "set times": "os.utime(outside + '/file', (1, 1))",
    "own symlink": "os.symlink(outside + '/file', 'own'); open('own', 'w').write('spoilt')",
    "symlink that was there": "open('link', 'w').write('spoilt')",
    "folder symlink": "open('folder-link/new', 'w').write('spoilt')",
    "dots": "open('../outside/file', 'w').write('spoilt')",
    "hard link": "os.link(outside + '/file', 'hard'); open('hard', 'w').write('spoilt')",
    "the process's root": "open('/proc/self/root' + outside + '/file', 'w').write('spoilt')",
    "a host process's root": "open(f'/proc/{victim}/root{outside}/file', 'w').write('spoilt')",
    "its parent's root": "open(f'/proc/{os.getppid()}/root{outside}/file', 'w').write('spoilt')",
    "the git file": "os.remove(work + '/.git')",
    "the git dir": "open(outside + '/.git/hooks/pre-commit', 'w').write('spoilt')",
}

PREFACE = """
import os, signal, socket, sys
work, outside, victim = sys.argv[1], sys.argv[2], int(sys.argv[3])
"""


@pytest.fixture
def outside(bench: Bench, tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / "file").write_text(PRECIOUS)
    (folder / "file").chmod(0o640)
    (bench.folder / "link").symlink_to(folder / "file")
    (bench.folder / "folder-link").symlink_to(folder)
    (bench.folder / ".git").write_text("gitdir: elsewhere\n")
    return folder


@pytest.fixture
def victim() -> Iterator[int]:
    """A process of the host, beside the workbench."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process.pid
        process.kill()


def picture(folder: Path) -> dict[str, tuple[int, float, str]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.stat().st_mtime, path.read_text())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def attack(bench: Bench, code: str, outside: Path, victim: int, *words: object) -> str:
    program = bench.folder / "attack.py"
    program.write_text(PREFACE + code + "\nprint('succeeded')\n")
    arguments = " ".join(str(word) for word in (bench.folder, outside, victim, *words))
    return (await bench.run(f"{sys.executable} attack.py {arguments}")).output


def is_confined(bench: Bench) -> bool:
    return not bench.environment


@pytest.mark.parametrize("name", WRITES)
async def test_writing_outside(name: str, bench: Bench, outside: Path, victim: int) -> None:
    before = picture(outside) | picture(bench.folder)
    output = await attack(bench, WRITES[name], outside, victim)
    after = picture(outside) | picture(bench.folder)
    changed = {path for path in before | after if before.get(path) != after.get(path)} - {"attack.py"}
    if is_confined(bench):
        assert "Error" in output
        # A name in the command's own folder is its own affair; what stands behind it is not.
        assert changed <= {"own"}
        assert (before | picture(outside)) == before
    else:
        assert "succeeded" in output
        assert changed


async def test_tcp(bench: Bench, outside: Path, victim: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        output = await attack(bench, "socket.create_connection(('127.0.0.1', int(sys.argv[4])))", outside, victim, port)
    assert ("succeeded" in output) is not is_confined(bench)


async def test_udp(bench: Bench, outside: Path, victim: int) -> None:
    code = "socket.socket(type=socket.SOCK_DGRAM).sendto(b'out', ('127.0.0.1', int(sys.argv[4])))"
    with socket.socket(type=socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(0.2 if is_confined(bench) else 5)
        await attack(bench, code, outside, victim, receiver.getsockname()[1])
        if is_confined(bench):
            with pytest.raises(TimeoutError):
                receiver.recv(10)
        else:
            assert receiver.recv(10) == b"out"


async def test_abstract_sockets(bench: Bench, outside: Path, victim: int) -> None:
    name = f"agent-escape-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        code = "socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[4])"
        output = await attack(bench, code, outside, victim, name)
    assert ("succeeded" in output) is not is_confined(bench)


@pytest.mark.parametrize("network", [False, True])
async def test_pathname_sockets(network: bool, bench: Bench, make_bench: MakeBench, outside: Path, victim: int) -> None:
    """Also with the network: an ssh agent or a container engine would let a command out."""
    tried = make_bench(SandboxSettings(network=network)) if is_confined(bench) else bench
    # Inside the repo, which stays readable: not hidden by its folder, so hidden by itself.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(outside / "s"))
        listener.listen()
        code = "os.chdir(outside); socket.socket(socket.AF_UNIX).connect('s')"
        output = await attack(tried, code, outside, victim)
    assert ("succeeded" in output) is not is_confined(bench), output


async def test_signals_to_the_host(bench: Bench, outside: Path, victim: int) -> None:
    await attack(bench, "os.kill(victim, signal.SIGKILL)", outside, victim)
    if is_confined(bench):
        os.kill(victim, 0)
        assert os.waitpid(victim, os.WNOHANG) == (0, 0)
    else:
        assert os.waitstatus_to_exitcode(await asyncio.to_thread(lambda: os.waitpid(victim, 0)[1])) == -signal.SIGKILL


async def test_all_processes_within_reach_are_its_own(bench: Bench, outside: Path, victim: int) -> None:
    code = (
        "print(os.path.exists(f'/proc/{victim}/environ') and b'sleep' in open(f'/proc/{victim}/cmdline', 'rb').read())"
    )
    output = await attack(bench, code, outside, victim)
    assert ("True" in output) is not is_confined(bench)


async def test_secrets_and_their_sockets_are_hidden(
    bwrap_works: bool, make_bench: MakeBench, bench: Bench, tmp_path: Path, outside: Path, victim: int
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("s3cret")
    (home / ".netrc").write_text("s3cret")
    if is_confined(bench):
        bench = make_bench(parent={"PATH": os.environ["PATH"], "HOME": str(home)})
    for name in (".ssh/id_ed25519", ".netrc"):
        output = (await bench.run(f"cat {home}/{name}")).output
        assert ("s3cret" in output) is not is_confined(bench)


async def test_no_privilege_is_left(confined: Bench) -> None:
    output = (await confined.run("cat /proc/self/status")).output
    rights = {line.split()[0]: line.split()[1] for line in output.splitlines() if line.startswith(("Cap", "NoNew"))}
    assert rights["NoNewPrivs:"] == "1"
    assert {int(rights[f"Cap{kind}:"], 16) for kind in ("Eff", "Prm", "Inh", "Amb")} == {0}


@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"])
async def test_the_kernel_is_not_to_be_set(path: str, confined: Bench) -> None:
    code = f"import os; os.open({path!r}, os.O_WRONLY)"
    outcome = await confined.run(f'{sys.executable} -c "{code}"')
    assert outcome.exit_code == 1
    assert "Error" in outcome.output


async def test_mounts_cannot_be_changed(confined: Bench, outside: Path) -> None:
    line = f"mount -o remount,rw,bind / ; umount {outside.parent}; unshare -Urm sh -c 'mount -o remount,rw,bind /'"
    await confined.run(f"{line}; echo spoilt > {outside}/file; unshare -Urm sh -c 'echo spoilt > {outside}/file'")
    assert (outside / "file").read_text() == PRECIOUS


async def test_the_network_can_be_allowed(make_bench: MakeBench, bwrap_works: bool) -> None:
    if not bwrap_works:
        pytest.skip("machine lacks: bubblewrap that works (apt-get install bubblewrap)")
    bench = make_bench(SandboxSettings(network=True))
    facts = await bench.shell.observe()
    assert (facts.kind, facts.holds, facts.network) == ("bwrap", True, True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}))"
        outcome = await bench.run(f'{sys.executable} -c "{code}"; cat /etc/resolv.conf')
    assert outcome.exit_code == 0, outcome.output


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for file in (0, 1, 2): os.close(file)
        while True:
            open(work + '/alive', 'w').close()
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists(work + '/alive'): time.sleep(0.01)
"""


async def test_daemons_end_with_the_command(bench: Bench, outside: Path, victim: int) -> None:
    assert "succeeded" in await attack(bench, DAEMON, outside, victim)
    (bench.folder / "alive").unlink()
    with pytest.raises(AssertionError, match="did not come true"):
        await until((bench.folder / "alive").exists, 0.2)


async def test_daemons_end_with_the_timeout(bench: Bench, outside: Path, victim: int) -> None:
    (bench.folder / "daemon.py").write_text(PREFACE + DAEMON)
    await bench.shell.observe()
    line = f"{sys.executable} daemon.py {bench.folder} {outside} {victim}; trap '' TERM; while :; do sleep 0.01; done"
    outcome = await bench.run(line, seconds=1.5)
    assert outcome.reason.startswith("timed out")
    assert outcome.seconds < 2.5
    (bench.folder / "alive").unlink()
    with pytest.raises(AssertionError, match="did not come true"):
        await until((bench.folder / "alive").exists, 0.2)
