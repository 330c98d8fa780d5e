"""Sessions recorded by released versions still verify, re-run to the byte, fork, and end as they ended."""

import json
import os
import tarfile
from pathlib import Path

import pytest

from tests.e2e.machine import Machine

RECORDED = Path(__file__).with_name("recorded")
# Task results that `agent sessions export --format json` printed with the version that recorded them.
EXPECTED = json.loads((RECORDED / "v0.1" / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.slow(quick=3)
def test_a_recorded_session_is_what_it_was(machine: Machine, name: str) -> None:
    repo, session = unpacked(machine, *name.split("/"))
    exported = json.loads(machine.agent("sessions", "export", session, "--format", "json", cwd=repo).out)
    expected = EXPECTED[name]
    assert len(exported["events"]) == expected["events"]
    assert shared(exported["tasks"], expected["tasks"]) == expected["tasks"]
    verified = machine.agent("sessions", "verify", session, cwd=repo)
    # Nothing in the repository names a session that was parked before its first checkpoint.
    expected_code = 1 if name.startswith("parked-at-baseline") else 0
    assert verified.code == expected_code, verified.said
    again = machine.agent("replay", session, "--rerun", cwd=repo)
    assert again.code == 0, again.said
    assert f"{expected['prompts']} prompts, {expected['prompts']} identical" in again.out


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPECTED if name.startswith(("two-tasks", "summarised", "hunk"))])
def test_a_recorded_session_is_forked(machine: Machine, name: str) -> None:
    repo, session = unpacked(machine, *name.split("/"))
    began_here(machine, repo, session)
    forked = machine.agent("sessions", "fork", session, "--at", "50", "--json", cwd=repo)
    assert forked.code == 0, forked.said
    again = machine.agent("replay", json.loads(forked.out)["session"], "--rerun", cwd=repo)
    assert again.code == 0, again.said


def unpacked(machine: Machine, archive: str, session: str) -> tuple[Path, str]:
    with tarfile.open(RECORDED / "v0.1" / f"{archive}.tar.gz") as packed:
        packed.extractall(machine.folder, filter="data")
    return machine.folder / archive, session


def began_here(machine: Machine, repo: Path, session: str) -> None:
    """Note the session as one of this machine: only those are forked."""
    noted = machine.state / "sessions"
    noted.mkdir(parents=True, exist_ok=True)
    (noted / session).write_bytes(os.fsencode((repo / "memory" / "sessions" / session).resolve()))


def shared(now: object, then: object) -> object:
    """Return what was exported then of what is exported now; later versions may add keys and word things anew."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {key: shared(now[key], then[key]) for key in then}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [shared(*pair) for pair in zip(now, then, strict=True)]
    return now
