"""Hooks as commands in the real sandbox: what they read, what they must not do, and how they end."""

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.hook_answers import HookOutcome, HookVerdict, read_hook_answer
from agent_workbench.core.settings import SandboxSettings
from agent_workbench.core.settings.extensions import HookPoint, HookSettings
from agent_workbench.subjects.hooks_adapter import HookCommand, HookCommands
from tests.adapters.shell.conftest import until, without_bwrap

DOCUMENT = json.dumps({"version": 1, "event": "diff_proposed", "text": "a\x1b]52;c;eA==\x07 — ü"}) + "\n"
POINTS = (HookPoint.DIFF_PROPOSED,)


class Scene:
    """A repository with a script, a worktree, and one hook of the repository's or the user's."""

    def __init__(self, folder: Path, environ: dict[str, str] | None = None) -> None:
        self.repo, self.worktree = folder / "repo", folder / "worktree"
        (self.repo / "scripts").mkdir(parents=True)
        self.worktree.mkdir()
        (self.repo / ".env").write_text("TOKEN=planted\n")
        self.environ = {**os.environ, "SECRET_TOKEN": "planted", **(environ or {})}
        self.trusted = True

    async def run(
        self,
        line: str,
        *,
        of_repo: bool = True,
        seconds: float = 20,
        unconfined: bool = False,
        document: str = DOCUMENT,
    ) -> HookOutcome:
        shell = SandboxedShell(SandboxSettings(), str(self.repo), self.environ, confined=not unconfined)
        settings = HookSettings(POINTS, line, seconds, unconfined=unconfined)
        hooks = HookCommands(
            {"a": HookCommand(settings, shell, of_repo)},
            str(self.repo),
            lambda _: self.trusted,
            hidden=(str(self.repo / ".env"),),
        )
        return await hooks.run("a", HookPoint.DIFF_PROPOSED, document, str(self.worktree))

    async def python(self, code: str, **options: object) -> HookOutcome:
        (self.repo / "scripts" / "hook.py").write_text(code)
        return await self.run(f"{shlex.quote(sys.executable)} scripts/hook.py", **options)  # type: ignore[arg-type]


@pytest.fixture
def scene(tmp_path: Path, needs_sandbox: None) -> Scene:
    return Scene(tmp_path)


async def test_a_hook_reads_the_event_and_answers(scene: Scene) -> None:
    code = (
        "import json, os, sys; read = json.load(sys.stdin); assert sys.stdin.read() == ''; "
        "print(json.dumps({'decision': 'refuse', 'reason': read['event'] + ' ' + os.environ['AGENT_HOOK_EVENT']}))"
    )
    answer = read_hook_answer(await scene.python(code))
    assert (answer.verdict, answer.reason) == (HookVerdict.REFUSE, "diff_proposed diff_proposed")


async def test_a_large_document_is_read_or_not(scene: Scene) -> None:
    large = json.dumps({"text": "x" * 3_000_000})
    assert (await scene.run("wc -c >&2; exit 1", document=large)).failure == f"exit code 1: {len(large)}"
    assert not (await scene.run("true", document=large)).failure


async def test_it_starts_in_the_repository_and_one_of_the_user_in_an_empty_folder(scene: Scene) -> None:
    (scene.repo / "json.py").write_text("raise SystemExit('the repository was obeyed')")
    assert (await scene.run("pwd")).output.strip() == str(scene.repo)
    mine = await scene.run(f"pwd; ls -A; {shlex.quote(sys.executable)} -c 'import json'", of_repo=False)
    assert not mine.failure
    assert str(scene.repo) not in mine.output
    assert len(mine.output.split()) == 1


WRITES = ["$PWD", "{worktree}", "/etc", "/var"]


@pytest.mark.parametrize("folder", WRITES)
async def test_it_writes_nothing_but_its_temporary_folder(scene: Scene, folder: str) -> None:
    place = folder.format(worktree=scene.worktree)
    done = await scene.run(
        f'cat "{scene.worktree}/x" 2>/dev/null; echo ok > $TMPDIR/x && ! echo bad > "{place}/planted"'
    )
    assert not done.failure
    assert not (scene.worktree / "planted").exists()
    assert not (scene.repo / "planted").exists()


async def test_it_sees_no_credentials(scene: Scene) -> None:
    code = """
import glob, os, sys
print(dict(os.environ), file=sys.stderr)
for path in [*glob.glob('/proc/[0-9]*/environ'), '.env']:
    try:
        print(open(path, 'rb').read(), file=sys.stderr)
    except OSError as error:
        print(error, file=sys.stderr)
print(open('/proc/1/cmdline').read(), file=sys.stderr)
import urllib.request
try:
    urllib.request.urlopen('http://127.0.0.1:9', timeout=2)
except Exception as error:
    print(repr(error), file=sys.stderr)
sys.stderr.flush()
os.execvp('sh', ['sh', '-c', 'exit 0'])
"""
    (scene.repo / "scripts" / "hook.py").write_text(code)
    done = await scene.run(f"{shlex.quote(sys.executable)} scripts/hook.py 2>&1 | grep -c 'plant[e]d'; true")
    assert done.output.strip() == "0"


async def test_it_ends_with_its_children(scene: Scene) -> None:
    mark = f"{os.getpid()}.25"
    code = f"""
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '{mark}'])
    os._exit(0)
print('{{"decision": "ask", "reason": "a daemon was left"}}')
"""
    assert read_hook_answer(await scene.python(code)).reason == "a daemon was left"
    await until(lambda: not running(mark), 1)


async def test_a_cancelled_hook_is_stopped(scene: Scene) -> None:
    mark = f"{os.getpid()}.75"
    work = asyncio.create_task(scene.run(f"sleep {mark}"))
    await until(lambda: running(mark), 20)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await until(lambda: not running(mark), 1)


def running(argument: str) -> bool:
    """Return True if a process of this argument, which is this test's own, is there."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if each.read_bytes().split(b"\0")[1:2] == [argument.encode()]:
                return True
        except OSError:
            continue
    return False


FAILURES = {
    "exit": ("echo said >&2; exit 3", "exit code 3: said"),
    "control codes": ("printf '\\033]52;c;eA==\\007x' >&2; exit 1", "exit code 1: ␛]52;c;eA==␇x"),
    "not installed": ("no-such-program-here", "exit code 127: "),
    "time": ("sleep 20", "timed out after 0.3 s"),
    "flood": ("yes", "timed out after 0.3 s"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_what_fails_asks(scene: Scene, name: str) -> None:
    line, failure = FAILURES[name]
    seconds = 0.3 if "timed out" in failure else 20
    done = await scene.run(line, seconds=seconds)
    assert done.failure.startswith(failure)
    assert read_hook_answer(done).verdict is HookVerdict.ASK


async def test_much_output_is_bounded_and_asks(scene: Scene) -> None:
    done = await scene.run("head -c 30000000 /dev/zero | tr '\\0' x; echo '{}'")
    assert len(done.output) <= 20_001
    assert done.failure.startswith("it printed too much")
    assert read_hook_answer(
        await scene.run("head -c 30000 /dev/zero | tr '\\0' ' '; echo '{\"decision\": \"refuse\"}'")
    ).failed


async def test_what_changed_since_the_trust_is_not_run(scene: Scene) -> None:
    canary = scene.repo.parent / "canary"
    scene.trusted = False
    done = await scene.run(f"touch {canary}", unconfined=True)
    assert "changed since it was trusted" in done.failure
    assert not canary.exists()
    mine = await scene.run(f"touch {canary}", of_repo=False, unconfined=True)  # the user's own is theirs
    assert not mine.failure
    assert canary.exists()


async def test_without_a_sandbox_only_an_unconfined_one_runs(tmp_path: Path) -> None:
    scene = Scene(tmp_path, without_bwrap())
    refused = await scene.run("echo '{}'")
    assert "no sandbox works here" in refused.failure
    assert "bubblewrap" in refused.failure
    assert (await scene.run("/bin/echo told", unconfined=True)).output == "told\n"
    assert "planted" not in (await scene.run("/usr/bin/env", unconfined=True)).output


async def test_no_part_of_a_line_runs_elsewhere(scene: Scene) -> None:
    for each in scene.repo.glob("scripts"):
        each.rmdir()
    (scene.repo / ".env").unlink()
    scene.repo.rmdir()
    assert (await scene.run("true; echo ran", unconfined=True)).failure
