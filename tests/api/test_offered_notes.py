"""Notes that another program offers: they wait for a person, and not without bound."""

import os
from pathlib import Path

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.subjects.knowledge import calls
from agent_workbench.subjects.knowledge.calls import note_of, park_notes
from tests.adapters.git.user import make_repo


async def test_offers_beyond_what_anybody_reads_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setattr(calls, "MOST_WAITING", 2)
    root = Path(make_repo(tmp_path / "repo", {"a.py": "one\n"}).root)
    invocation = Invocation(root, {"PATH": os.environ["PATH"]}, {})
    for number in range(2):
        parked = await park_notes(invocation, (note_of("Approve all.", f"n{number}"),), "a test")
        assert (parked.written, parked.reference is not None) == (False, True)
    with pytest.raises(UsageError, match="2 offers of notes wait already"):
        await park_notes(invocation, (note_of("Approve all.", "n3"),), "a test")
    assert not (root / "memory/knowledge").exists()
