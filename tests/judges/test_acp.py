"""Judge of the agent for editors: npm's `acpx`, a headless client of the protocol, on a real repository."""

import asyncio
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from tests.e2e.calc import GOOD, RIGHT, calc_repo
from tests.e2e.conftest import llama_server, server_environ, tiny_model_path
from tests.e2e.machine import CHECKOUT, LAUNCHER, WAIT_SECONDS, Machine, bodies, journal_lines
from tests.judges.downloads import FETCH_SECONDS
from tests.judges.npm import installed, ran
from tests.llama_fixtures import LlamaServer

__all__ = ["llama_server", "tiny_model_path"]

ACPX = "acpx@0.19.1"
TASK = "Make add() add in @calc.py"
CHECKED = {"AGENT_TEST_COMMAND": "python test_calc.py"}
pytestmark = pytest.mark.timeout(2 * FETCH_SECONDS)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a Node.js and acpx."""
    return installed(tmp_path_factory.mktemp("acpx"), ACPX)


@pytest.fixture
def machine(tmp_path: Path, llama_server: LlamaServer) -> Iterator[Machine]:
    """A machine with a model."""
    machine = Machine(tmp_path / "machine", {**server_environ(llama_server), **CHECKED})
    yield machine
    machine.end()


class Client:
    """acpx in a repository, with an agent whose model says `scripts` and stays at `halt`."""

    def __init__(
        self, judge: Path, machine: Machine, repo: Path, scripts: Mapping[str, Sequence[str]], halt: str = ""
    ) -> None:
        self._plan = machine.folder / "acp-plan.json"
        self.mark = machine.folder / "mark"
        self.says(scripts, halt)
        paths = [str(CHECKOUT), machine.environ.get("PYTHONPATH")]
        self._judge, self._repo = judge, repo
        self._environ = {**machine.environ, "PYTHONPATH": ":".join(filter(None, paths))}
        self._agent = shlex.join([sys.executable, "-P", str(LAUNCHER), str(self._plan), "acp"])

    def says(self, scripts: Mapping[str, Sequence[str]], halt: str = "") -> None:
        """Have the next agent's model say `scripts`, and stay at `halt`."""
        self._plan.write_text(json.dumps({"scripts": scripts, "halt": halt, "mark": str(self.mark)}))

    async def ran(self, *words: str) -> str:
        """Run acpx, which approves everything, and return what it printed."""
        flags = ("--agent", self._agent, "--cwd", str(self._repo), "--approve-all", "--format", "json")
        code, out = await ran(self._judge, "acpx", *flags, *words, cwd=self._repo, environ=self._environ)
        assert code == 0, out
        return out

    def agents(self) -> list[psutil.Process]:
        """Return the agents that run for this client."""
        return [each for each in psutil.process_iter() if str(self._plan) in _words(each) and "acp" in _words(each)]

    def stop(self) -> None:
        """End what acpx left running."""
        for each in psutil.process_iter():
            if str(self._plan) in " ".join(_words(each)) or self._is_owner(each):
                each.kill()

    def _is_owner(self, process: psutil.Process) -> bool:
        """Return True for the process in which acpx keeps its session."""
        try:
            return "acpx" in " ".join(process.cmdline()) and process.environ().get("HOME") == self._environ["HOME"]
        except psutil.Error:
            return False

    async def until(self, path: Path) -> None:
        """Wait until a file is there."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not path.exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def questions(out: str) -> list[str]:
    """Return the titles of the permission requests that acpx printed, up to their colon."""
    told = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    asked = [each["params"] for each in told if each.get("method") == "session/request_permission"]
    return [each["toolCall"]["title"].partition(":")[0] for each in asked]


async def test_the_journey_to_a_merged_commit(judge: Path, machine: Machine) -> None:
    repo = calc_repo(machine)
    out = await Client(judge, machine, repo, {"T-2": GOOD}).ran("exec", TASK)
    assert '"stopReason":"end_turn"' in out.replace(" ", "")
    # The journey of an editor's user: one command, and these questions.
    assert questions(out) == ["Set this repo up for the workbench?", "diff", "commit", "fast-forward"]
    assert (repo / "calc.py").read_text() == RIGHT
    by = {each["by"] for each in bodies(journal_lines(repo), "action_decided")}
    assert {each for each in by if each.startswith("acp:")} == {"acp:acpx"}
    assert machine.agent("verify", "HEAD", cwd=repo).code == 0


async def test_a_cancel_then_a_crash_and_the_session_is_taken_up(judge: Path, machine: Machine) -> None:
    repo = calc_repo(machine)
    client = Client(judge, machine, repo, {"T-2": GOOD}, halt="token")
    try:
        await cancelled_and_taken_up(client, repo)
    finally:
        client.stop()


async def cancelled_and_taken_up(client: Client, repo: Path) -> None:
    """Cancel a task within an answer, crash the agent, and go on."""
    await client.ran("sessions", "new")
    prompting = asyncio.ensure_future(client.ran(TASK))
    await client.until(client.mark)
    await client.ran("cancel")
    assert '"stopReason":"cancelled"' in (await prompting).replace(" ", "")
    client.mark.unlink(missing_ok=True)
    (agent,) = client.agents()
    agent.kill()  # a crash of ours: the journal is what is left
    agent.wait(WAIT_SECONDS)
    client.says({"T-2": GOOD})
    out = await client.ran("Go on with it, please")
    assert '"stopReason":"end_turn"' in out.replace(" ", "")
    assert (repo / "calc.py").read_text() == RIGHT
    assert [each["text"] for each in bodies(journal_lines(repo), "user_said")] == ["Go on with it, please"]
    await client.ran("sessions", "close")
