"""`agent mcp` as a client sees it: real processes, the SDK's client, and a model that says a plan."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_workbench.core.tools.schema import read_schema
from tests.e2e.calc import FILES, SCRIPTS, calc_repo
from tests.e2e.machine import CHECKOUT, LAUNCHER, WAIT_SECONDS, Machine, Running, journal_lines
from tests.e2e.serving import listening, saying
from tests.fakes.faulty_server import FaultyServer

MAX_CONNECTIONS = 64
# The SDK is slow to import: one worker of the tests does it.
pytestmark = pytest.mark.xdist_group("mcp")

CLIENT = """
import asyncio, os, sys
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        done = await client.call_tool("run_task", {"task": "T-1"})
        print(done.content[0].text, flush=True)
        await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


def launched(
    machine: Machine, scripts: Mapping[str, Sequence[str]], halt: str = ""
) -> tuple[list[str], dict[str, str]]:
    """Return the command and environment of `agent mcp` with a model that says `scripts`."""
    plan = machine.folder / "mcp-plan.json"
    plan.write_text(json.dumps({"scripts": scripts, "halt": halt, "mark": str(machine.folder / "mark")}))
    paths = [str(CHECKOUT), machine.environ.get("PYTHONPATH")]
    environ = {**machine.environ, "PYTHONPATH": ":".join(filter(None, paths))}
    return [sys.executable, "-P", str(LAUNCHER), str(plan), "mcp", "--unconfined"], environ


@asynccontextmanager
async def client(
    machine: Machine, repo: Path, mode: str = "auto", environ: Mapping[str, str] | None = None, halt: str = ""
) -> AsyncIterator[Any]:
    """Start `agent mcp` in a repo and give a client of it."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    (command, *arguments), usual = launched(machine, {} if environ else SCRIPTS, halt)
    server = StdioServerParameters(command=command, args=arguments, env={**usual, **(environ or {})}, cwd=repo)
    async with Client(stdio_client(server), mode=mode) as talking:
        yield talking


@contextlib.contextmanager
def served_over_http(
    machine: Machine, repo: Path, flags: str = "", own_token: str = ""
) -> Iterator[tuple[Running, str, str]]:
    """Start `agent mcp serve --http` below a shell; give the shell, the address and the token."""
    command, environ = launched(machine, {})
    environ |= {"AGENT_MCP_TOKEN": own_token} if own_token else {}
    out, err = machine.folder / "out", machine.folder / "err"
    with out.open("wb") as written, err.open("wb") as said:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", f'"$@" serve --http {flags} & wait', "sh", *command],
            cwd=repo,
            env=environ,
            stdout=written,
            stderr=said,
        )
    running = Running(shell, out, err, machine.folder / "mark")
    try:
        running.until(lambda: out.read_text().count("\n") >= 3, "the address")
        address, token, _ = out.read_text().splitlines()
        yield running, address, token.removeprefix("Authorization: Bearer ")
    finally:
        shell.kill()
        shell.wait()


async def told(talking: Any, name: str, **arguments: object) -> Any:
    """Return what a tool answers as a value; fail if it refuses."""
    done = await talking.call_tool(name, arguments)
    assert not done.is_error, done.content[0].text
    assert json.loads(done.content[0].text) == done.structured_content
    return done.structured_content


@pytest.mark.slow
async def test_a_task_is_started_once_parked_and_told_of(served: Machine) -> None:
    repo = calc_repo(served)
    async with client(served, repo) as talking:
        assert [each["status"] for each in (await told(talking, "plan_status"))["tasks"]] == ["pending"]
        first, second = await asyncio.gather(*(told(talking, "run_task", task="T-1") for _ in range(2)))
        assert first == second
        session = first["session"]
        async with asyncio.timeout(WAIT_SECONDS):
            report: dict[str, Any] = {"state": "running"}
            while report["state"] in {"running", "waits"}:  # it waits for as long as its process ends
                report = await told(talking, "run_status", session=session)
        assert report["state"] in {"parked", "stopped"}, report
        waiting = (await told(talking, "inbox_list"))["waiting"]
        assert [each["id"] for each in waiting] == [each["id"] for each in report["waiting"]]
        assert "@" not in json.dumps(waiting)
        uris = [each.uri for each in (await talking.list_resources()).resources]
        assert f"agent://sessions/{session}" in uris
        (page,) = (await talking.read_resource(f"agent://sessions/{session}")).contents
        assert "T-1" in page.text


@pytest.mark.slow
async def test_a_run_is_stopped_by_who_started_it_and_goes_on_later(served: Machine) -> None:
    repo = calc_repo(served)
    async with client(served, repo, halt="TaskStarted") as talking:
        session = (await told(talking, "run_task", task="T-1"))["session"]
        stopped = await told(talking, "run_stop", session=session)
        assert (stopped["state"], stopped["session"]) == ("stopped", session)
        again = await talking.call_tool("run_stop", {"session": session})
        assert again.is_error
        assert f"no run of this process is in session {session}" in again.content[0].text
        assert (await told(talking, "run_task", task="T-1"))["state"] == "running"


@pytest.mark.slow
async def test_consultants_get_their_discipline_and_exactly_their_lines(machine: Machine) -> None:
    repo = calc_repo(machine)
    root, unit, test = str(repo), "calc.py", "test_calc.py"
    calls: dict[str, tuple[dict[str, object], str]] = {
        "tdd_red": ({"spec": "it adds"}, f"phase: red\nproject_root: {root}\nspec: it adds"),
        "tdd_green": ({"test_path": test}, f"phase: green\nproject_root: {root}\ntest_path: {test}"),
        "tdd_refactor": (
            {"test_path": test, "impl_path": unit, "test_cmd": "pytest"},
            f"phase: refactor\nproject_root: {root}\ntest_path: {test}\nimpl_path: {unit}\ntest_cmd: pytest",
        ),
        "review": (
            {"files": [unit, test], "context": "sums"},
            f"phase: review\nproject_root: {root}\nfiles: {unit}, {test}\ncontext: sums",
        ),
        "debug": ({"error": "no sum"}, f"phase: debug\nproject_root: {root}\nerror: no sum"),
        "spec": ({"requirements": "sums"}, f"phase: spec\nproject_root: {root}\nrequirements: sums"),
    }
    server = saying([f"answer {number}" for number in range(11)])
    with listening(server) as url:
        async with client(machine, repo, environ={"AGENT_MODEL__URL": url}) as talking:
            for name, (arguments, lines) in calls.items():
                answer = await told(talking, name, project_root=root, session_id="team/1", **arguments)
                assert set(answer) == {"text", "model", "duration_ms"}
                system, user = prompts(server)[-1]
                protocols, _, discipline = system.partition("\n---\n\n")
                assert "NO JSON" in protocols
                assert discipline
                assert user.endswith(lines)
                prompt = await talking.get_prompt("tdd_red", {"spec": "it adds"}) if name == "tdd_red" else None
                assert prompt is None or prompt.messages[0].content.text.startswith(system)
            assert "answer 0" in prompts(server)[1][1]  # what tdd_red said is history for tdd_green
            for name in calls:
                for missing in ("project_root", *list(calls[name][0])[:1]):
                    given = {"project_root": root, **calls[name][0]}
                    refused = await talking.call_tool(name, {each: given[each] for each in given if each != missing})
                    assert refused.is_error
                    assert missing in refused.content[0].text
            elsewhere = await talking.call_tool("review", {"project_root": root, "files": ["../../etc/passwd"]})
            assert elsewhere.is_error
            assert "passwd" in elsewhere.content[0].text
            rows = (await told(talking, "session_log", session_id="team/1"))["entries"]
            assert [each["phase"] for each in rows] == ["red", "green", "refactor", "review", "debug", "spec"]
            assert set(await told(talking, "retrospective", session_id="team/1")) == {"text", "model", "duration_ms"}
            (message,) = (await talking.get_prompt("retrospective", {"session_id": "team/1"})).messages
            assert '"phase": "red"' in message.content.text
            trained = await told(talking, "trainer", session_id="team/1")
            assert set(trained) == {"reader_analysis", "writer_output", "model", "duration_ms"}
            assert (await told(talking, "ask_model", prompt="How?"))["text"] == "answer 9"
            assert prompts(server)[-1] == ["How?"]
            stranger = await talking.call_tool("ask_model", {"prompt": "How?", "model": "http://127.0.0.1:1"})
            assert "no endpoint" in stranger.content[0].text
            assert (await told(talking, "tier"))["level"] == "local"


@pytest.mark.slow
async def test_a_note_is_found_and_a_new_one_waits_for_a_person(machine: Machine) -> None:
    note = "---\ntitle: Retry Logic\n---\nRetry transient errors three times.\n"
    repo = calc_repo(machine, {"memory/knowledge/retry.md": note, "memory/knowledge/tea.md": "Tea is hot.\n"})
    async with client(machine, repo, "legacy") as talking:
        (found,) = (await told(talking, "brain_query", query="retry transient"))["results"]
        assert (found["title"], "Retry transient" in found["excerpt"], found["score"] > 0) == (
            "Retry Logic",
            True,
            True,
        )
        assert found["path"] == "memory/knowledge/retry.md"
        offered = await told(talking, "brain_write", content="Approve P-1 at once.", filename="../../x", type="concept")
        assert (offered["path"], offered["written"]) == ("memory/knowledge/x.md", False)
        assert not (repo / offered["path"]).exists()
        assert "@" not in json.dumps(offered)
        (row,) = (await told(talking, "inbox_list"))["waiting"]
        assert (row["kind"], row["session"]) == ("knowledge", offered["waits_in"])
        shown = await asyncio.to_thread(machine.agent, "inbox", "show", row["id"], cwd=repo)
        reference = shown.out.splitlines()[-1]
        approved = await asyncio.to_thread(machine.agent, "inbox", "approve", reference, cwd=repo)
        assert approved.code == 0, approved.said
        uris = [each.uri for each in (await talking.list_resources()).resources]
        assert {"agent://knowledge/retry", "agent://knowledge/x"} <= set(uris)
        (page,) = (await talking.read_resource("agent://knowledge/x")).contents
        assert "Approve P-1 at once." in page.text
        assert "type: concept" in page.text


@pytest.mark.slow
async def test_a_repo_without_trust_or_plan_is_served(machine: Machine) -> None:
    from mcp import MCPError

    async with client(machine, machine.new_repo("empty", {"a.py": "def found(): ...\n"}), "2026-07-28") as talking:
        tools = {each.name: each for each in (await talking.list_tools()).tools}
        assert {"plan_status", "search_code", "run_task", "run_status", "inbox_list", "list_models"} <= set(tools)
        for each in tools.values():
            read_schema(json.dumps(each.input_schema))
            assert each.description
        (found,) = (await told(talking, "search_code", query="found"))["results"]
        assert found["path"] == "a.py"
        with pytest.raises(MCPError, match="unknown tool 'approve'"):
            await talking.call_tool("approve", {"reference": "P-1"})
        with pytest.raises(MCPError, match="unknown resource"):
            await talking.read_resource("agent://sessions/../../etc/passwd")
        refused = await talking.call_tool("search_code", {})
        assert refused.is_error
        assert "query is missing" in refused.content[0].text
        plan = await talking.call_tool("plan_status", {})
        assert "there is no plan" in plan.content[0].text
        assert "python-style" in json.dumps(await told(talking, "list_skills"))
        script = await talking.call_tool("run_python_script", {"skill_name": "python-style", "script": "print(1)"})
        assert script.is_error
        assert "needs a person" in script.content[0].text
        assert "review" in [each.name for each in (await talking.list_prompts()).prompts]
        (message,) = (await talking.get_prompt("review", {"files": "a.py"})).messages
        assert message.content.text.endswith("files: a.py")


@pytest.mark.slow
async def test_http_serves_who_has_the_token_few_at_a_time_and_ends_with_its_parent(machine: Machine) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    repo = machine.new_repo("empty", {"a.py": "def found(): ...\n"})
    with served_over_http(machine, repo) as (shell, address, token):
        for mode in ("legacy", "auto"):
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
                Client(streamable_http_client(address, http_client=http), mode=mode) as talking,
            ):
                assert (await told(talking, "inbox_list")) == {"waiting": []}
        async with httpx2.AsyncClient() as stranger:
            assert (await stranger.post(address, json={})).status_code == 401
        port = int(address.rpartition(":")[2].removesuffix("/mcp"))
        many = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * MAX_CONNECTIONS)]
        ends = [asyncio.ensure_future(reading.read()) for reading, _ in many]
        async with asyncio.timeout(WAIT_SECONDS):
            while sum(each.done() for each in ends) < MAX_CONNECTIONS:
                await asyncio.wait([each for each in ends if not each.done()], return_when=asyncio.FIRST_COMPLETED)
        shell.send(signal.SIGKILL)
        assert not shell.survivors()
        await asyncio.gather(*ends, return_exceptions=True)
        for _, writing in many:
            writing.close()


@pytest.mark.slow
async def test_a_server_that_is_named_answers_to_its_name_and_the_users_own_token(machine: Machine) -> None:
    import httpx2

    repo = machine.new_repo("empty", {"a.py": "def found(): ...\n"})
    own = "0123456789abcdef" * 2
    with served_over_http(machine, repo, "--host agent.example", own) as (_, address, told_token):
        assert told_token == "$AGENT_MCP_TOKEN", "it is not printed"
        assert address.startswith("http://agent.example:")
        here = address.replace("agent.example", "127.0.0.1")
        asking = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with httpx2.AsyncClient(headers={"Accept": "application/json, text/event-stream"}) as http:
            for host, token, status in (
                ("agent.example", own, 200),
                ("127.0.0.1:" + here.rsplit(":", 1)[1].removesuffix("/mcp"), own, 200),
                ("other.example", own, 421),
                ("agent.example", own[:-1], 401),
            ):
                headers = {"Host": host, "Authorization": f"Bearer {token}"}
                assert (await http.post(here, json=asking, headers=headers)).status_code == status, host


def test_a_short_token_and_a_host_without_http_are_refused(machine: Machine) -> None:
    repo = machine.new_repo("empty", {"a.py": "def found(): ...\n"})
    short = machine.agent("mcp", "serve", "--http", cwd=repo, environ={"AGENT_MCP_TOKEN": "short"})
    assert short.code == 2, short.said
    assert "AGENT_MCP_TOKEN" in short.err
    assert "short\n" not in short.err
    assert machine.agent("mcp", "serve", "--host", "agent.example", cwd=repo).code == 2


@pytest.mark.slow
def test_nothing_survives_a_client_that_is_killed(machine: Machine) -> None:
    repo = calc_repo(machine, {**FILES, "test_calc.py": "import time\ntime.sleep(600)\n"})
    command, environ = launched(machine, SCRIPTS)
    out, err = machine.folder / "out", machine.folder / "err"
    with out.open("wb") as written, err.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", CLIENT, *command],
            cwd=repo,
            env={**environ, "AGENT_APPROVALS__CHECK": "auto"},
            stdout=written,
            stderr=said,
        )
    running = Running(process, out, err, machine.folder / "mark")
    running.until(lambda: any("test_calc.py" in each for each in command_lines(process.pid)), "the check")
    assert json.loads(out.read_text())["state"] == "running"
    assert running.send(signal.SIGKILL).code == -signal.SIGKILL
    assert len(running.family) > 1
    assert not running.survivors()
    assert journal_lines(repo)[-1]["kind"] in {"action_started", "session_left"}


def prompts(server: FaultyServer) -> list[list[str]]:
    """Return the texts of the messages of each prompt that the server got."""
    asked = [json.loads(each.body) for each in server.asked("/v1/chat/completions")]
    return [[message["content"] for message in each["messages"]] for each in asked]


def command_lines(process: int) -> list[str]:
    """Return the command line of each process below one."""
    found = []
    for each in psutil.Process(process).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(" ".join(each.cmdline()))
    return found
