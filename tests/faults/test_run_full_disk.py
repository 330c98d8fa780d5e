"""The disk fills up under a run: it stops cleanly with a journal that proves itself, and goes on when there is room."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import GOOD, SCRIPTS, calc_repo
from tests.e2e.conftest import served
from tests.e2e.machine import WHOLE, Done, Machine, bodies, journal_lines
from tests.llama_fixtures import llama_server, tiny_model_path

__all__ = ["llama_server", "served", "tiny_model_path"]

RUN = ("run", "--task", "T-1", "--yes", "--json")


@contextmanager
def small_files(machine: Machine, repo: Path, kilobytes: int) -> Iterator[Callable[[], Done]]:
    """Give a run in which no file can grow over so many kB."""
    assert repo.is_dir()

    def run() -> Done:
        prefix = ("bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash")
        # Python itself would leave compiled modules cut in the middle, for everybody.
        environ = {"PYTHONDONTWRITEBYTECODE": "1"}
        return machine.start(*RUN, cwd=repo, scripts=SCRIPTS, prefix=prefix, environ=environ).wait()

    yield run


@contextmanager
def small_disk(machine: Machine, repo: Path, kilobytes: int) -> Iterator[Callable[[], Done]]:
    """Give a run whose `memory/` is a disk of so many kB."""
    memory, kept = repo / "memory", repo.with_name("kept")
    memory.rename(kept)
    memory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(memory)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("machine lacks: the right to mount a small disk")
    try:
        subprocess.run(["cp", "-a", f"{kept}/.", str(memory)], check=True)
        yield lambda: machine.start(*RUN, cwd=repo, scripts=SCRIPTS).wait()
        subprocess.run(["cp", "-a", f"{memory}/.", str(kept)], check=True)
    finally:
        subprocess.run(["umount", str(memory)], check=True)
        memory.rmdir()
        kept.rename(memory)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limited", "kilobytes"),
    [(small_files, 4), (small_files, 16), (small_disk, 8), (small_disk, 16), (small_disk, 24)],
)
def test_it_stops_cleanly_and_goes_on_when_there_is_room(
    served: Machine,
    limited: Callable[[Machine, Path, int], AbstractContextManager[Callable[[], Done]]],
    kilobytes: int,
) -> None:
    repo = calc_repo(served)
    before = fingerprint(repo, ["memory"])
    with limited(served, repo, kilobytes) as run:
        stopped = run()
    assert stopped.code == 4, stopped.err
    assert "Traceback" not in stopped.err
    assert "No space left" in stopped.err or "File too large" in stopped.err, stopped.err
    told = stopped.events
    assert [event["seq"] for event in told] == list(range(len(told)))
    if told:
        lines = journal_lines(repo, told[0]["session"])
        assert len(lines) >= len(told), "what was told is recorded"
    for journal in (repo / "memory/sessions").glob("*/journal.jsonl"):
        verified = served.agent("sessions", "verify", journal.parent.name, cwd=repo)
        assert verified.code in WHOLE, verified.err
    assert fingerprint(repo, ["memory"]) == before
    # Where nobody knows whether the diff was applied it was taken back; where it was, it fits no second time.
    done = served.scripted({"T-1": (GOOD[0], *GOOD)}, *RUN, cwd=repo)
    assert done.code == 0, done.err
    session = done.events[0]["session"]
    assert len(bodies(journal_lines(repo, session), "task_committed")) == 1
    assert served.agent("sessions", "verify", session, cwd=repo).code == 0
    assert fingerprint(repo, ["memory"]) == before
