"""Rows of somebody who can write to the database, and where each of them must be found."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from agent_workbench.core.history.signed_approvals import decision_message, decision_text
from agent_workbench.core.inbox import InboxDecision, parse_reference
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.signed import SignedPurpose
from tests.e2e.test_inbox import reference
from tests.faults.fleet import Fleet
from tests.faults.fleet_scene import PROJECT, clone_of

FORGED_TASKS = ("forged-unsigned", "forged-renamed", "forged-edited")
_COPY = "INSERT INTO agent_tasks (queue, id, body, signature, priority, needs) SELECT queue, %s, {}, {}, 99, needs"
_OF_ONE = " FROM agent_tasks WHERE id = %s"


def forge_tasks(fleet: Fleet) -> None:
    """Queue tasks that nobody signed: without a signature, under another name, with another text."""
    signed = fleet.scene.tasks["edits"][0]
    unsigned, renamed, edited = FORGED_TASKS
    fleet.rows(_COPY.format("body", "''") + _OF_ONE, unsigned, signed)
    fleet.rows(_COPY.format("body", "signature") + _OF_ONE, renamed, signed)
    changed = f"convert_to(replace(convert_from(body, 'UTF8'), '{signed}', '{edited}'), 'UTF8')"
    fleet.rows(_COPY.format(changed, "signature") + _OF_ONE, edited, signed)


def forge_worker(fleet: Fleet) -> None:
    """Register a worker that does not exist and that every task would prefer."""
    about = (
        '{"name": "evil", "tags": ["gpu", "large"], "most_jobs": 1000, "resources": {"load": [0, 0, 0],'
        ' "cores": 1000, "cores_available": 1000, "memory_total_gb": 1000, "memory_available_gb": 1000}}'
    )
    fleet.rows(
        "INSERT INTO agent_workers (repository, project, name, instance, about)"
        " SELECT repository, project, 'evil', 'evil', %s FROM agent_workers LIMIT 1",
        about,
    )
    fleet.rows(
        "INSERT INTO agent_waiting_workers (queue, worker, fresh, until)"
        " SELECT queue, 'evil', true, now() + interval '1 hour' FROM agent_tasks LIMIT 1"
    )


def forge_decisions(fleet: Fleet, task: str) -> None:
    """Approve what waits without a signature, and with that of a worker's key."""
    person = fleet.scene.person
    name = parse_reference(reference(person, clone_of(person), task))
    decision = InboxDecision(name, Verdict.APPROVE, made_by="laptop", made_at="2026-01-02T03:04:05.000000Z")
    text = decision_text(decision)
    worker = next(iter(fleet.scene.workers.values())).folder / "key"
    for signature in ("", _signed(worker, SignedPurpose.DECISION, decision_message(text))):
        fleet.rows(
            "INSERT INTO agent_decisions (session, proposal, digest, text, signature) VALUES (%s, %s, %s, %s, %s)",
            name.session,
            name.proposal,
            name.digest,
            text,
            signature,
        )
    fleet.rows("SELECT pg_notify('agent_decisions', %s)", name.session)


def _signed(key: Path, purpose: SignedPurpose, message: bytes) -> str:
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", purpose]
    return subprocess.run(command, input=message, capture_output=True, check=True).stdout.decode()


def check_forged_tasks(fleet: Fleet) -> None:
    """Fail unless the forged tasks failed without a session, and the person is told why."""
    rows = fleet.rows("SELECT id, state, session, reason FROM agent_tasks WHERE id LIKE 'forged-%%'")
    assert {(task, state, session) for task, state, session, _ in rows} == {
        (each, "failed", "") for each in FORGED_TASKS
    }
    assert all("does not count" in reason for _, _, _, reason in rows), rows
    logs = fleet.logs()
    told = [line[:300] for line in logs.splitlines() if "forged" in line]
    assert all(task in logs for task in FORGED_TASKS), told
    fleet.rows("DELETE FROM agent_tasks WHERE id LIKE 'forged-%%'")


def check_forged_decisions(fleet: Fleet, task: str) -> None:
    """Fail unless what waits still waits, and the person is told of both rows."""
    assert task in fleet.parked()
    done = fleet.ask(fleet.scene.person, "inbox", "show", task)
    assert done.said.count("does not count") >= 2, done.said


def check_no_repetition(fleet: Fleet) -> None:
    """Set a task that is done back to new; fail unless it is refused, and what it did stays as it was."""
    task = fleet.scene.tasks["edits"][-1]
    branch = f"refs/heads/agent/{task}"
    before = fleet.scene.person.git(fleet.scene.remote, "rev-parse", branch)
    fleet.rows("CREATE TABLE kept AS SELECT * FROM agent_tasks WHERE id = %s", task)
    fleet.rows("UPDATE agent_tasks SET state = 'queued', session = '', worker = '', job = NULL WHERE id = %s", task)
    fleet.until(
        lambda: fleet.rows("SELECT state FROM agent_tasks WHERE id = %s", task) == [("failed",)], f"{task} fails"
    )
    assert "was done before" in fleet.logs()
    assert fleet.scene.person.git(fleet.scene.remote, "rev-parse", branch) == before
    columns = _columns(fleet, "agent_tasks")
    fleet.rows("DELETE FROM agent_tasks WHERE id = %s", task)
    fleet.rows(f"INSERT INTO agent_tasks ({columns}) SELECT {columns} FROM kept")
    fleet.rows("DROP TABLE kept")


def find_forgeries(fleet: Fleet) -> dict[str, bool]:
    """Change rows of what is done, one after the other; return which change a command on the person's machine finds."""
    tasks = fleet.scene.tasks["edits"]
    session, seq = fleet.rows(
        "SELECT t.session, max(l.seq) FROM agent_tasks t JOIN agent_lines l ON l.session = t.session"
        " WHERE t.id = %s GROUP BY t.session",
        tasks[0],
    )[0]
    fleet.scene.person.git(clone_of(fleet.scene.person), "fetch", "-q", "origin")
    commit = fleet.scene.person.git(fleet.scene.remote, "rev-parse", f"refs/heads/agent/{tasks[0]}")

    said = []

    def fails(*arguments: str) -> bool:
        done = fleet.scene.person.agent(*arguments, cwd=clone_of(fleet.scene.person))
        said.append(done.said)
        return done.code != 0

    def verified() -> bool:
        return fails("sessions", "verify", str(session))

    def proved() -> bool:
        return fails("verify", commit)

    def checked() -> bool:
        return fails("database", "check", "--project", PROJECT)

    changes: dict[str, tuple[str, tuple[object, ...], Callable[[], bool]]] = {
        "a line": ("UPDATE agent_lines SET line = replace(line, 'approve', 'reject')", (session,), proved),
        "the last line": (f"DELETE FROM agent_lines WHERE seq = {seq}", (session,), verified),
        "the head": ("UPDATE agent_heads SET seq = seq - 1", (session,), verified),
        "the head's signature": ("UPDATE agent_heads SET signature = ''", (session,), verified),
        "a result": ("UPDATE agent_tasks SET result = replace(result, 'committed', 'c0mmitted')", (session,), checked),
        "a result's signature": ("UPDATE agent_tasks SET result_signature = ''", (session,), checked),
    }
    assert not verified(), said[-1]
    assert not checked(), said[-1]
    assert not proved(), said[-1]
    found: dict[str, bool] = {}
    for name, (change, (of,), look) in changes.items():
        table = change.split()[2 if change.startswith("DELETE") else 1]
        kept = f"kept_{len(found)}"
        fleet.rows(f"CREATE TABLE {kept} AS SELECT * FROM {table} WHERE session = %s", of)
        fleet.rows(f"{change} {'AND' if 'WHERE' in change else 'WHERE'} session = %s", of)
        found[name] = look()
        fleet.rows(f"DELETE FROM {table} WHERE session = %s", of)
        columns = _columns(fleet, table)
        fleet.rows(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {kept}")
        fleet.rows(f"DROP TABLE {kept}")
    assert not proved(), said[-1]
    return found


def _columns(fleet: Fleet, table: str) -> str:
    rows = fleet.rows(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_generated = 'NEVER'", table
    )
    return ", ".join(str(name) for (name,) in rows)
