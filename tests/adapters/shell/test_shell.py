"""Running commands, confined or not: what comes back, what they find, how they end."""

import asyncio
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest

from agent_workbench.adapters.shell import shell
from agent_workbench.core.errors import SandboxError, ShellError, StorageError
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.settings import SandboxSettings
from agent_workbench.system.processes import Guard, spawn
from tests.adapters.shell.conftest import Bench, MakeBench, until, without_bwrap


async def test_output_and_exit_code_come_back(bench: Bench) -> None:
    outcome = await bench.run("echo out; echo err >&2; exit 7")
    assert (outcome.exit_code, outcome.output, outcome.cut_bytes, outcome.reason) == (7, "out\nerr\n", 0, "")
    assert 0 < outcome.seconds < 20
    assert "".join(bench.pieces) == "out\nerr\n"


async def test_a_failure_on_a_full_disk_says_nothing_of_the_code(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "LEAST_FREE_BYTES", 1 << 62)
    assert (await bench.run("true")).exit_code == 0
    with pytest.raises(StorageError, match="'false' failed on a full disk"):
        await bench.run("false")


async def test_it_runs_in_the_folder_and_writes_there(bench: Bench) -> None:
    outcome = await bench.run("pwd; echo kept > file")
    assert outcome.output.strip() == str(bench.folder)
    assert (bench.folder / "file").read_text() == "kept\n"


async def test_further_folders_can_be_writable(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    outcome = await bench.run(f"echo kept > {other}/file", writable=(str(other),))
    assert outcome.exit_code == 0
    assert (other / "file").read_text() == "kept\n"


async def test_the_environment_holds_nothing_of_ours(make_bench: MakeBench, tmp_path: Path) -> None:
    planted = {"AWS_SECRET_ACCESS_KEY": "s3cret-a", "MY_TOKEN": "s3cret-b", "LD_PRELOAD": "s3cret-c"}
    own_bin = tmp_path / "bin"
    own_bin.mkdir()
    path = os.pathsep.join([".", "relative/bin", str(own_bin), "/usr/bin", "/bin"])
    bench = make_bench(parent={**planted, "HOME": os.environ["HOME"], "PATH": path})
    outcome = await bench.run("env", environment={"ADDED": "yes"})
    found = dict(line.partition("=")[::2] for line in outcome.output.splitlines())
    assert "s3cret" not in outcome.output
    assert found["PATH"] == "/usr/bin:/bin"
    assert (found["ADDED"], found["TERM"], found["PYTHONDONTWRITEBYTECODE"]) == ("yes", "dumb", "1")
    assert found["HOME"] != os.environ["HOME"]


async def test_home_and_temporary_folder_are_the_commands_own(bench: Bench) -> None:
    find = 'find "$HOME" "$TMPDIR" -name .rc -o -name t | sort -u | wc -l'
    first = await bench.run(f'echo x > "$HOME/.rc" && echo y > "$TMPDIR/t" && mktemp > /dev/null && {find}')
    second = await bench.run(find)
    assert (first.exit_code, first.output.strip()) == (0, "2")
    assert second.output.strip() == "0", "the next command starts afresh"


async def test_what_a_command_leaves_in_its_own_folders_is_removed(bench: Bench, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    deep = "import os\nos.chdir(os.environ['TMPDIR'])\nfor _ in range(3000): os.mkdir('0'); os.chdir('0')"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        outcome = await bench.run(f'{shlex.quote(sys.executable)} -c {shlex.quote(deep)} && mkdir -m 0 "$HOME/shut"')
    assert (outcome.exit_code, outcome.output) == (0, "")
    assert not list(temporary.glob("agent-command-*"))


async def test_standard_input_is_empty(bench: Bench) -> None:
    assert (await bench.run("cat; echo end")).output == "end\n"


async def test_a_folder_that_is_missing_is_an_error(bench: Bench) -> None:
    bench.folder.rmdir()
    with pytest.raises(ShellError, match="is not a folder"):
        await bench.run("true")


async def test_a_timeout_keeps_what_was_said(bench: Bench) -> None:
    began = time.monotonic()
    outcome = await bench.run("echo before; sleep 60", seconds=0.4)
    assert outcome.exit_code is None
    assert outcome.reason == "timed out after 0.4 s"
    assert outcome.output.startswith("before\n")
    assert time.monotonic() - began < 30, "and not when the command would have ended"


async def test_a_python_that_is_aborted_says_where_it_hangs_and_nothing_follows_it(bench: Bench) -> None:
    (bench.folder / "hang.py").write_text(
        "import time\ndef waits():\n    print('it', 'hangs', flush=True)\n    time.sleep(60)\nwaits()\n"
    )
    line = f"ulimit -c; {shlex.quote(sys.executable)} hang.py; echo follows"
    command = Command(line, str(bench.folder), 60, bench.environment)
    async with bench.shell._running(await bench.shell._sandbox(), command) as (process, _):
        said = b""
        while b"it hangs" not in said:
            said += await process.read(1024)
        process.abort()
        while not re.search(rb'hang.py", line \d in waits', said):
            said += await process.read(1024)
        await process.stop()
        while piece := await process.read(1024):
            said += piece
    assert said.startswith(b"0\n"), "no core file"
    assert b"follows" not in said
    assert not any(each.name.startswith("core") for each in bench.folder.iterdir())


async def test_a_command_that_closed_its_output_is_still_waited_for(bench: Bench) -> None:
    assert (await bench.run("exec >&- 2>&-; sleep 0.2; touch done; exit 3")).exit_code == 3
    assert (bench.folder / "done").exists()
    assert (await bench.run("exec >&- 2>&-; sleep 60", seconds=0.3)).exit_code is None


async def test_cancellation_ends_the_command(bench: Bench) -> None:
    await bench.shell.observe()
    running = asyncio.create_task(bench.run("while :; do touch alive; sleep 0.01; done"))
    await until((bench.folder / "alive").exists, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (bench.folder / "alive").unlink()
    await asyncio.sleep(0.05)
    assert not (bench.folder / "alive").exists()


async def test_output_is_passed_on_while_it_comes(bench: Bench) -> None:
    await bench.run("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.06; done")
    assert 3 <= len(bench.pieces) <= 12
    assert "".join(bench.pieces) == "".join(f"{i}\n" for i in range(1, 9))


async def test_many_small_writes_are_passed_on_together(bench: Bench) -> None:
    outcome = await bench.run("i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done")
    assert len(bench.pieces) <= outcome.seconds * 20 + 2
    assert outcome.output.endswith("2999\n")


async def test_without_bubblewrap_commands_are_not_confined_and_it_is_said(make_bench: MakeBench) -> None:
    facts = await make_bench(parent=without_bwrap()).shell.observe()
    assert (facts.kind, facts.holds, facts.network) == ("none", False, True)
    assert "bubblewrap" in facts.why


async def test_a_sandbox_that_is_required_stops_the_work(make_bench: MakeBench) -> None:
    bench = make_bench(SandboxSettings(require=True), without_bwrap())
    with pytest.raises(ShellError, match=r"sandbox\.require is set") as raised:
        await bench.run("touch ran")
    assert "bubblewrap" in raised.value.advice
    assert not (bench.folder / "ran").exists()


async def test_a_bwrap_that_confines_nothing_is_not_believed(make_bench: MakeBench, tmp_path: Path) -> None:
    """It drops its own options and runs the command as it is."""
    fake = tmp_path.parent / f"{tmp_path.name}-bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    facts = await make_bench(parent={"PATH": str(fake.parent), "HOME": "/"}).shell.observe()
    assert (facts.kind, facts.holds) == ("none", False)
    assert re.search(r"could \[\"host's socket\", 'network', 'outside'\]", facts.why)


@pytest.mark.usefixtures("needs_sandbox")
async def test_a_bwrap_that_needs_privileges_confines_without_the_filter(make_bench: MakeBench, tmp_path: Path) -> None:
    """One that is set-user-id gets no privileges behind a filter, and no namespace where only root may make one."""
    fake = tmp_path.parent / f"{tmp_path.name}-bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/sh\n"
        "if grep -q '^NoNewPrivs:.*1' /proc/self/status; then echo 'bwrap: No permissions to creating new namespace'\n"
        f'else exec {shutil.which("bwrap")} "$@"; fi\n'
    )
    fake.chmod(0o755)
    bench = make_bench(SandboxSettings(require=True), {"PATH": f"{fake.parent}:{os.defpath}", "HOME": "/"})
    facts = await bench.shell.observe()
    assert (facts.kind, facts.holds) == ("bwrap", False)
    assert "the host's Unix sockets: the filter against it was refused (bwrap: No permissions to" in facts.why
    with pytest.raises(SandboxError, match=r"sandbox\.require is set"):
        await bench.run("true")
    with pytest.raises(SandboxError, match=r"sandbox\.require is set"):
        await bench.shell.start(Command("true", str(bench.folder), 20, {}), bench.pieces.append)


async def test_a_bwrap_that_fails_is_quoted(make_bench: MakeBench, tmp_path: Path) -> None:
    fake = tmp_path.parent / f"{tmp_path.name}-bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n")
    fake.chmod(0o755)
    facts = await make_bench(parent={"PATH": str(fake.parent), "HOME": "/"}).shell.observe()
    assert facts.kind == "none"
    assert "setting up uid map: Permission denied" in facts.why
    assert "apparmor_restrict_unprivileged_userns" in facts.why


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder of the checkout with a cache, linked into the folder of the commands."""
    modules = tmp_path / "node_modules"
    (modules / ".cache").mkdir(parents=True)
    (modules / ".cache/old").write_text("old")
    (modules / "x.js").write_text("x")
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work/node_modules").symlink_to(modules)
    return modules


def contents(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


ADD = "cd node_modules && echo new > .cache/new && cat .cache/*"
CHANGE = "cd node_modules && mkdir -p .new/a && echo y > x.js && cat x.js"


async def test_what_a_command_writes_to_a_linked_folder_is_thrown_away(confined: Bench, modules: Path) -> None:
    if not await confined.shell.copies(("node_modules",)):
        pytest.skip("machine lacks: bubblewrap 0.11 with overlays")
    before = contents(modules)
    assert (await confined.run(ADD, linked=("node_modules",))).output == "new\nold"
    assert (await confined.run(CHANGE, linked=("node_modules",))).output == "y\n"
    assert (await confined.run("cat node_modules/x.js; ls -A node_modules", linked=("node_modules",))).output == (
        "x.cache\nx.js\n"
    )
    assert contents(modules) == before
    assert "Read-only" in (await confined.run(ADD)).output


async def test_without_overlays_the_caches_of_a_linked_folder_are_empty(
    make_bench: MakeBench, needs_sandbox: None, modules: Path, tmp_path: Path
) -> None:
    fake = tmp_path.parent / f"{tmp_path.name}-bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/sh\n"
        'case " $* " in *" --overlay-src "*) echo "bwrap: Unknown option --overlay-src" >&2; exit 1;; esac\n'
        f'exec {shutil.which("bwrap")} "$@"\n'
    )
    fake.chmod(0o755)
    bench = make_bench(parent={"PATH": f"{fake.parent}:{os.defpath}", "HOME": "/"})
    assert not await bench.shell.copies(("node_modules",))
    before = contents(modules)
    assert (await bench.run(ADD, linked=("node_modules",))).output == "new\n"
    assert "Read-only" in (await bench.run(CHANGE, linked=("node_modules",))).output
    assert contents(modules) == before


async def test_a_link_that_a_command_made_is_not_followed(confined: Bench, modules: Path, tmp_path: Path) -> None:
    """It could lead to a folder that is hidden from commands."""
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.mkdir()
    (secret / "key").write_text("planted")
    (confined.folder / "node_modules").unlink()
    (confined.folder / "node_modules").symlink_to(secret)
    assert "planted" not in (await confined.run("cat node_modules/key", linked=("node_modules",))).output
    assert "new" in (await confined.run(f"cd {shlex.quote(str(tmp_path))} && {ADD}", linked=("node_modules",))).output


LOOK = """
import asyncio, os
from agent_workbench.adapters.shell.sandbox import find_sandbox
found = asyncio.run(find_sandbox(os.environ, network=False))
print(found.guard, found.facts.kind, found.facts.holds, found.facts.why)
"""
# A kernel without seccomp's listeners, as far as this process can tell.
REFUSE = """
import ctypes, struct
lines = (0x20, 0, 0, 0), (0x15, 0, 1, {number}), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000)
code = b"".join(struct.pack("=HBBI", *line) for line in lines)
held = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(held)))) == 0
"""


async def test_a_kernel_that_refuses_the_filter_is_named(confined: Bench, tmp_path: Path) -> None:
    await confined.shell.observe()
    number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
    said = await output_of(REFUSE.format(number=number) + LOOK, tmp_path)
    assert said.startswith(
        "open bwrap False commands can reach the host's Unix sockets: the filter against it was refused"
    )
    assert "Function not implemented" in said


async def test_a_sandbox_inside_another_has_no_filter_of_its_own_and_holds(confined: Bench, tmp_path: Path) -> None:
    await confined.shell.observe()
    assert await output_of(LOOK, tmp_path, guard=Guard.OWN) == "open bwrap True \n"


async def output_of(code: str, folder: Path, guard: Guard = Guard.OPEN) -> str:
    argv, said = [sys.executable, "-P", "-c", code], b""
    async with await spawn(argv, folder=str(folder), environment=os.environ, guard=guard) as process:
        while piece := await process.read(4096):
            said += piece
    return said.decode()


async def test_a_bwrap_that_the_repo_brings_is_not_run(make_bench: MakeBench, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    fake.chmod(0o755)
    await make_bench(parent={"PATH": f"{fake.parent}:bin", "HOME": "/"}).shell.observe()
    assert not (tmp_path / "ran").exists()


async def test_the_sandbox_is_looked_for_once(confined: Bench) -> None:
    first, second = await asyncio.gather(confined.shell.observe(), confined.shell.observe())
    assert first is second
    assert (first.kind, first.holds, first.network, first.why) == ("bwrap", True, False, "")


async def test_our_own_python_runs_in_the_sandbox(confined: Bench) -> None:
    outcome = await confined.run(f"{sys.executable} -c 'import pytest; print(pytest.__name__)'")
    assert outcome.output == "pytest\n"


@pytest.mark.parametrize("line", ["echo a\0b", "echo " + "x" * 3_000_000, "echo \ud800"])
async def test_a_line_that_no_program_can_be_given_is_an_error(line: str, bench: Bench) -> None:
    with pytest.raises(ShellError, match="could not be started"):
        await bench.run(line)


async def test_entries_of_the_path_that_cannot_be_looked_at_are_no_defect(make_bench: MakeBench) -> None:
    # A name that is too long stands for the home of another user, which root may look into.
    bench = make_bench(parent={"PATH": f"{os.defpath}:/{'x' * 300}/bin", "HOME": os.environ["HOME"]})
    assert (await bench.run("echo seen")).output == "seen\n"


async def test_what_commands_used_is_told_once_with_that_of_their_descendants(bench: Bench) -> None:
    assert bench.shell.used() is None
    spend = "import time; kept = bytearray(60_000_000)\nwhile time.process_time() < 0.3: pass"
    await bench.run(f"{sys.executable} -c '{spend}' & wait")
    one = bench.shell.used()
    assert one is not None
    assert 0.3 <= one.cpu_seconds < 10
    assert one.wall_seconds > 0
    assert one.peak_memory_bytes > 60_000_000
    assert one.gpu_memory_bytes is None
    assert bench.shell.used() is None
    await bench.run("sleep 20", seconds=0.2)
    await bench.run("true")
    both = bench.shell.used()
    assert both is not None
    assert both.wall_seconds >= 0.2
    assert both.peak_memory_bytes < one.peak_memory_bytes
