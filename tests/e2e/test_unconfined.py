"""Where no sandbox holds, nobody watches and nothing was said, nothing runs."""

import os
from pathlib import Path

import pytest

from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.conftest import server_environ
from tests.e2e.machine import Machine, bodies, journal_lines
from tests.llama_fixtures import LlamaServer

RUN = ("run", "--task", "T-1", "--yes", "--json")


@pytest.fixture(scope="session")
def path_without_bwrap(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with everything that is on this one but bubblewrap."""
    return path_without(tmp_path_factory.mktemp("without-bwrap"), "bwrap")


@pytest.fixture
def bare(tmp_path: Path, llama_server: LlamaServer, path_without_bwrap: str) -> Machine:
    """A machine on which bubblewrap is not installed."""
    environ = {**server_environ(llama_server), "PATH": path_without_bwrap}
    return Machine(tmp_path / "machine", environ, strict=True, forks=True)


def path_without(folder: Path, name: str) -> str:
    """Return a PATH with everything that is on this one but one program."""
    there = []
    for number, each in enumerate(os.environ["PATH"].split(":")):
        if not (Path(each) / name).exists():
            there.append(each)
            continue
        copy = folder / f"bin-{number}"
        copy.mkdir()
        for program in Path(each).iterdir():
            if program.name != name:
                (copy / program.name).symlink_to(program)
        there.append(str(copy))
    return ":".join(there)


@pytest.mark.parametrize("run", [RUN, ("run", "make add() add in @calc.py")])
def test_it_refuses_and_leaves_nothing(bare: Machine, run: tuple[str, ...]) -> None:
    repo = calc_repo(bare)
    before = bare.git(repo, "status", "--porcelain", "--ignored")
    done = bare.scripted(SCRIPTS, *run, cwd=repo)
    assert (done.code, done.out) == (4, "")
    assert "nothing confines commands here" in done.err
    assert "--unconfined" in done.err
    assert "bubblewrap" in done.err
    assert bare.git(repo, "status", "--porcelain", "--ignored") == before
    assert bare.git(repo, "branch", "--list", "agent/*") == ""


def test_it_works_where_that_was_said(bare: Machine) -> None:
    repo = calc_repo(bare)
    done = bare.scripted(SCRIPTS, *RUN, "--unconfined", cwd=repo)
    assert done.code == 0, done.said
    said = "tests and commands are not confined here: bubblewrap is not installed: apt-get install bubblewrap"
    assert len([line for line in done.err.splitlines() if line.startswith(said)]) == 1
    (configured,) = bodies(journal_lines(repo), "session_configured")
    assert configured["sandbox"]["holds"] is False


@pytest.mark.slow
def test_the_demo_is_ours_and_runs(bare: Machine) -> None:
    folder = bare.folder / "shop"
    done = bare.agent("demo", "--headless", "--json", "--folder", str(folder), cwd=bare.home)
    assert done.code == 0, done.said
    (configured,) = bodies(journal_lines(folder), "session_configured")
    assert configured["sandbox"]["holds"] is False
