"""What a command must not be able to do. Each attack is also made without a sandbox, where it has to succeed."""

import asyncio
import contextlib
import errno
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
@pytest.mark.slow(quick=4)
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


# Each leaves a socket that listens at `s` in the folder, by a way that its name in /proc/net/unix does not tell.
BINDINGS = {
    "its path": "own.bind(os.path.abspath('s'))",
    "a relative name": "own.bind('s')",
    "a new name": "own.bind(os.path.abspath('other')); os.rename('other', 's')",
    "a second name": "own.bind(os.path.abspath('other')); os.link('other', 's'); os.remove('other')",
    "another folder": "os.mkdir('below'); own.bind('below/s'); os.symlink('below/s', 's')",
}
LISTENER = """
import os, socket, sys
os.chdir(sys.argv[1])
sys.stdin.read(1)
own = socket.socket(socket.AF_UNIX)
{binding}
own.listen()
print("listening", flush=True)
own.accept()
"""


@contextlib.contextmanager
def host_listener(binding: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the host that listens in the folder once it was told a byte."""
    command = [sys.executable, "-c", LISTENER.format(binding=binding), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def let_listen(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"x")
    process.stdin.flush()
    assert process.stdout.readline() == b"listening\n"


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.slow(quick=4)
async def test_pathname_sockets(
    binding: str, network: bool, bench: Bench, make_bench: MakeBench, outside: Path, victim: int
) -> None:
    """Also with the network: an ssh agent or a container engine would let a command out."""
    tried = make_bench(SandboxSettings(network=network)) if is_confined(bench) else bench
    with host_listener(BINDINGS[binding], outside) as process:
        await asyncio.to_thread(let_listen, process)
        # Inside the repo, which stays readable.
        code = "os.chdir(outside); socket.socket(socket.AF_UNIX).connect('s')"
        output = await attack(tried, code, outside, victim)
    assert ("succeeded" in output) is not is_confined(bench), output
    assert ("Permission denied" in output) is is_confined(bench), output


async def test_a_socket_bound_after_the_start(bench: Bench, outside: Path, victim: int) -> None:
    code = "open('ready', 'w').close()\nwhile not os.path.exists('go'): pass\n"
    code += "socket.socket(socket.AF_UNIX).connect(outside + '/s')"
    await bench.shell.observe()
    with host_listener(BINDINGS["a relative name"], outside) as process:
        running = asyncio.create_task(attack(bench, code, outside, victim))
        await until((bench.folder / "ready").exists, 20)
        await asyncio.to_thread(let_listen, process)
        (bench.folder / "go").touch()
        output = await running
    assert ("succeeded" in output) is not is_confined(bench), output


async def test_an_address_that_is_no_place_in_memory(confined: Bench, outside: Path, victim: int) -> None:
    """It is answered as the kernel answers it: whoever asked would wait for ever otherwise."""
    code = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    code += "for place in (8, 0xFFFF800000000000, 0xFFFFFFFFFFFFFFFF):\n"
    code += "    with socket.socket(socket.AF_UNIX) as caller:\n"
    code += "        print(libc.connect(caller.fileno(), ctypes.c_void_p(place), 110), ctypes.get_errno())"
    output = await attack(confined, code, outside, victim)
    assert output == f"-1 {errno.EFAULT}\n" * 3 + "succeeded\n"


# What a command may not have at all. Where the kernel lacks it, nothing is shown by its failing.
SOCKETS = {
    "unix datagrams": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "raw unix sockets": "socket.socket(socket.AF_UNIX, socket.SOCK_RAW)",
    "a pair of datagrams": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "audit": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)",
    "kernel events": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)",
    "kernel ciphers": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "io_uring": "import ctypes; assert ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) >= 0",
}


@pytest.mark.parametrize("name", SOCKETS)
@pytest.mark.slow(quick=4)
async def test_other_ways_to_a_socket(name: str, confined: Bench, outside: Path, victim: int) -> None:
    output = await attack(confined, SOCKETS[name], outside, victim)
    assert "succeeded" not in output
    assert "Error" in output


OTHER_ABIS = {
    # getpid as 32-bit programs call it: mov eax, 20; int 0x80; ret
    "i386": "import ctypes, mmap; page = mmap.mmap(-1, 4096, prot=7)\n"
    "page.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\n"
    "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()",
    "x32": "import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39)",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine lacks: a second architecture in its kernel")
@pytest.mark.parametrize("name", OTHER_ABIS)
async def test_calls_of_another_architecture_end_the_command(
    name: str, confined: Bench, outside: Path, victim: int
) -> None:
    """Their numbers are others, so that a filter by number would not see them."""
    output = await attack(confined, OTHER_ABIS[name], outside, victim)
    assert "succeeded" not in output
    assert "Bad system call" in output


OWN_SOCKETS = {
    "streams": "own.bind('s'); own.listen(); other().connect(os.path.abspath('s'))",
    "relative names": "own.bind('s'); own.listen(); os.mkdir('d'); os.chdir('d'); other().connect('../s')",
    "symbolic links": "own.bind('s'); own.listen(); os.symlink(os.path.abspath('s'), 't'); other().connect('t')",
    "the temporary folder": "own.bind(os.environ['TMPDIR'] + '/s'); own.listen(); other().connect(own.getsockname())",
    "names without a file": "own.bind('\\0s'); own.listen(); other().connect('\\0s')",
    "packets": "own = other(socket.SOCK_SEQPACKET); own.bind('s'); own.listen(); other(5).connect('s')",
    "a full queue": "own.bind('s'); own.listen(0); a = other(); a.connect('s'); b = other(); b.setblocking(False);\n"
    "while b.connect_ex('s') == 0: b = other(); b.setblocking(False)",
    "a listener that takes its time": "own.bind('s'); own.listen(0); import threading\n"
    "threads = [threading.Thread(target=other().connect, args=('s',)) for _ in range(9)]\n"
    "for thread in threads: thread.start()\n"
    "taken = [own.accept() for _ in threads]\n"
    "for thread in threads: thread.join()",
    "a signal meanwhile": "own.bind('s'); own.listen(0); signal.signal(signal.SIGALRM, lambda *_: None)\n"
    "signal.siginterrupt(signal.SIGALRM, False)\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
    "for _ in range(300): caller = other(); caller.connect('s'); own.accept()",
    "loopback": "own = socket.create_server(('127.0.0.1', 0)); socket.create_connection(own.getsockname())",
    "a pair": "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'",
    "a manager": "import multiprocessing; assert multiprocessing.Manager().list([1])[0] == 1",
    "a fork server": "import multiprocessing as m\n"
    "if __name__ == '__main__': assert m.get_context('forkserver').Pool(2).map(abs, [-1]) == [1]",
    "nobody there": "own.bind('s')\ntry: other().connect('s')\nexcept ConnectionRefusedError: pass",
    "no such file": "\ntry: other().connect('none')\nexcept FileNotFoundError: pass",
}


@pytest.mark.parametrize("name", OWN_SOCKETS)
@pytest.mark.slow(quick=2)
async def test_a_commands_own_sockets_work(name: str, bench: Bench, outside: Path, victim: int) -> None:
    preface = "other = lambda kind=socket.SOCK_STREAM: socket.socket(socket.AF_UNIX, kind)\nown = other()\n"
    output = await attack(bench, preface + OWN_SOCKETS[name], outside, victim)
    assert "succeeded" in output


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
    make_bench: MakeBench, bench: Bench, tmp_path: Path, outside: Path, victim: int
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


@pytest.mark.usefixtures("needs_sandbox")
async def test_the_network_can_be_allowed(make_bench: MakeBench) -> None:
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
    assert outcome.seconds < 30
    (bench.folder / "alive").unlink()
    with pytest.raises(AssertionError, match="did not come true"):
        await until((bench.folder / "alive").exists, 0.2)
