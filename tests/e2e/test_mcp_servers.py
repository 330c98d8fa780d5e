"""The MCP server of a repository, end to end: nothing before trust, the gate, a rule, and no secret on record."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.calc import GOOD, calc_repo
from tests.e2e.machine import Machine, bodies, journal_lines
from tests.fakes import asking_mcp_server, mcp_server

ASKING = str(Path(asking_mcp_server.__file__))
SERVER = str(Path(mcp_server.__file__))
VALUE = "a-value-that-nobody-may-read"
LOOK = "Thought: I look.\nAction: mcp__fake__environment\n{}"
SHARED = {
    "mcpServers": {"Fake": {"command": sys.executable, "args": ["-I", SERVER], "env": {"GIVEN": "${DEMO_VALUE}"}}}
}
SETTINGS = f"mcp_servers: {{fake: {{read: [{json.dumps(SERVER)}]}}}}\n"
RUN = ("run", "--task", "T-1", "--yes")


@pytest.mark.slow
@pytest.mark.usefixtures("needs_sandbox")
def test_a_tool_of_a_repos_server_waits_until_a_rule_names_its_digest(served: Machine) -> None:
    repo = calc_repo(served, {".agent.yml": SETTINGS, ".mcp.json": json.dumps(SHARED)})
    environ = {"DEMO_VALUE": VALUE}
    (listed,) = served.agent("mcp", "list", "--json", cwd=repo).events
    assert (listed["name"], listed["trusted"], listed["variables"]) == ("fake", False, ["DEMO_VALUE"])
    assert served.agent("mcp", "test", "--json", cwd=repo, environ=environ).events == []
    assert served.agent("mcp", "test", "fake", cwd=repo).code == 2
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    lacking = served.agent("mcp", "test", cwd=repo)
    assert (lacking.code, "needs the environment variable DEMO_VALUE" in lacking.out) == (4, True)
    (tested,) = served.agent("mcp", "test", "--json", cwd=repo, environ=environ).events
    digests = {tool["name"]: tool["digest"] for tool in tested["tools"]}
    parked = served.scripted({"T-1": (LOOK, *GOOD)}, *RUN, cwd=repo, environ=environ)
    assert parked.code == 3, parked.said
    assert "T-1 waits for a person: external P-" in parked.said
    policy = served.folder / "policy.yml"
    rule = {"kind": "external", "tool": f"mcp__fake__environment@{digests['mcp__fake__environment']}"}
    kinds = dict.fromkeys(("diff", "check", "commit"), "auto")
    policy.write_text(json.dumps({"approvals": {**kinds, "rules": [rule]}}))
    run = ("run", "--task", "T-1", "--policy", str(policy))
    done = served.scripted({"T-1": (LOOK, *GOOD)}, *run, cwd=repo, environ=environ)
    assert done.code == 0, done.said
    (output,) = [each["output"] for each in bodies(journal_lines(repo), "action_finished") if "GIVEN" in str(each)]
    assert "«redacted:DEMO_VALUE»" in str(output)
    assert "AGENT_" not in str(output).replace("AGENT_WORKBENCH_COMMAND", "")
    kept = [each for folder in (repo, served.folder / "state") for each in folder.rglob("*") if each.is_file()]
    assert not [each for each in kept if VALUE.encode() in each.read_bytes()]


def test_a_server_is_added_to_your_settings_or_the_repos(machine: Machine) -> None:
    repo = calc_repo(machine)
    assert "agent mcp add" in machine.agent("mcp", "list", cwd=repo).out
    header = "Authorization=Bearer ${DOCS}"
    added = machine.agent("mcp", "add", "docs", "--url", "https://docs.example/mcp", "--header", header, cwd=repo)
    assert (added.code, "settings.yml" in added.out) == (0, True), added.said
    grants = ("--repo", "--read", ".", "--network")
    added = machine.agent("mcp", "add", "git", *grants, "--command", "git-server", "--read", cwd=repo)
    assert (added.code, "`agent trust`" in added.out) == (0, True), added.said
    listed = {each["name"]: each for each in machine.agent("mcp", "list", "--json", cwd=repo).events}
    assert (listed["docs"]["trusted"], listed["git"]["trusted"]) == (True, False)
    assert (listed["git"]["command"], listed["git"]["read"], listed["git"]["network"]) == (
        ["git-server", "--read"],
        ["."],
        True,
    )
    assert machine.agent("mcp", "add", "none", cwd=repo).code == 2
    assert machine.agent("mcp", "add", "docs", "--url", "https://x", cwd=repo).code == 2


@pytest.mark.slow
def test_a_person_signs_in_at_a_server_and_a_worker_never_does(served: Machine) -> None:
    repo = calc_repo(served)
    command = [sys.executable, "-I", ASKING, "--http", "3600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert served.agent("mcp", "add", "web", "--url", f"{address}/mcp", cwd=repo).code == 0
        lacking = served.scripted({"T-1": GOOD}, *RUN, cwd=repo)
        assert "mcp:web wants you to sign in: run `agent mcp login web`" in lacking.said, lacking.said
        signing = served.start("mcp", "login", "web", cwd=repo)
        signing.until(lambda: "&scope=" in signing.out.read_text(), "the page of the sign-in")
        (page,) = [line for line in signing.out.read_text().splitlines() if line.startswith(address)]
        assert httpx.get(page, follow_redirects=True).text == "You can close this page and go back to the terminal."
        signed = signing.wait()
        assert (signed.code, "signed in at web" in signed.out) == (0, True), signed.said
        tested = served.agent("mcp", "test", "web", cwd=repo)
        assert (tested.code, "asking 1.0, protocol 2026-07-28" in tested.out) == (0, True), tested.said
        (kept,) = served.state.rglob("keys/mcp/*.json")
        assert kept.stat().st_mode & 0o777 == 0o600
        tokens = ["access-1-s3cr3t-value", "refresh-1-s3cr3t-value"]
        found = [each for each in served.folder.rglob("*") if each.is_file() and each != kept]
        assert not [each for each in found if any(token.encode() in each.read_bytes() for token in tokens)]
        assert [served.agent("mcp", "logout", "web", cwd=repo).code for _ in range(2)] == [0, 1]
        assert "agent mcp login web" in served.agent("mcp", "test", "web", cwd=repo).out
        server.kill()


@pytest.mark.slow
def test_a_question_that_nobody_answers_is_declined_and_on_record(served: Machine) -> None:
    repo = calc_repo(served)
    entry = {"command": sys.executable, "args": ["-I", ASKING], "unconfined": True}
    (served.home / ".config/agent-workbench").mkdir(parents=True)
    (served.home / ".config/agent-workbench/settings.yml").write_text(json.dumps({"mcp_servers": {"asking": entry}}))
    policy = served.folder / "policy.yml"
    policy.write_text(json.dumps({"approvals": dict.fromkeys(("diff", "check", "commit", "external"), "auto")}))
    book = 'Thought: I book.\nAction: mcp__asking__book\n{"day": "Monday"}'
    done = served.scripted({"T-1": (book, *GOOD)}, "run", "--task", "T-1", "--policy", str(policy), cwd=repo)
    assert done.code == 0, done.said
    assert "nobody is there to answer a server's question" in done.said
    lines = journal_lines(repo)
    assert "nothing booked: decline" in [each["observation"] for each in bodies(lines, "action_finished")]
    for words in (("sessions", "verify"), ("verify", "agent/T-1")):
        proved = served.agent(*words, cwd=repo)
        assert proved.code == 0, proved.said
    shown = served.agent("sessions", "show", cwd=repo)
    assert shown.code == 0, shown.said
    assert "answer_server" in shown.out, shown.out
