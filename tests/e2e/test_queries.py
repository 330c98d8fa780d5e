"""A verb that only tells something writes nothing of the user: neither in the repository nor in the state folder."""

from hashlib import sha256
from pathlib import Path

import pytest

from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import Machine

QUERIES = (
    *("plan status", "plan show", "plan check", "sessions list", "inbox list", "rules", "knowledge list"),
    *("skills list", "audit query", "audit query --costs", "search add", "sessions search add"),
    *("index status", "clean"),
)


def written(machine: Machine, repo: Path) -> dict[Path, str]:
    """Return the digest of each file of the repository and the state folder."""
    files = (path for folder in (repo, machine.state) for path in folder.rglob("*"))
    return {path: sha256(path.read_bytes()).hexdigest() for path in files if path.is_file() and not path.is_symlink()}


@pytest.mark.slow
def test_a_query_writes_nothing(served: Machine) -> None:
    repo = calc_repo(served)
    done = served.scripted(SCRIPTS, "run", "--task", "T-1", "--yes", cwd=repo)
    assert done.code == 0, done.said
    before = written(served, repo)
    for words in QUERIES:
        told = served.agent(*words.split(), cwd=repo)
        assert told.code == 0, told.said
        assert written(served, repo) == before, words
