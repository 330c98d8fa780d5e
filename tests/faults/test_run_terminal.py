"""`agent run` in a terminal that is closed, or in which Ctrl-C is pressed, while the model answers."""

import os
import time

import psutil
import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import GOOD, SCRIPTS, calc_repo
from tests.e2e.conftest import served
from tests.e2e.machine import WAIT_SECONDS, Machine, bodies, journal_lines
from tests.e2e.serving import listening
from tests.e2e.terminal import CTRL_C, Terminal, in_terminal
from tests.fakes.faulty_server import Answer, FaultyServer, delta, stream
from tests.llama_fixtures import llama_server, tiny_model_path

__all__ = ["llama_server", "served", "tiny_model_path"]

SAID = GOOD[0][:40]


def press_ctrl_c(terminal: Terminal) -> None:
    terminal.type(CTRL_C)


def close(terminal: Terminal) -> None:
    """Close our end of the terminal, as a window that is closed does."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, terminal.descriptor)
    os.close(nowhere)


@pytest.mark.slow
@pytest.mark.parametrize("leave", [press_ctrl_c, close])
def test_it_ends_at_once_and_goes_on_later(served: Machine, leave: object) -> None:
    assert callable(leave)
    repo = calc_repo(served)
    before = fingerprint(repo, ["memory"])
    server = FaultyServer().chat(stream(delta(SAID), WAIT_SECONDS)).on("/tokenize", Answer(200, [b'{"tokens": [1]}']))
    with listening(server) as url:
        command = ("run", "--task", "T-1", "--yes", "--unconfined", "--model-url", url)
        with in_terminal(served, *command, cwd=repo) as terminal:
            terminal.until("of context")
            _until_asked(server)
            family = psutil.Process(terminal.process.pid).children(recursive=True)
            leave(terminal)
            assert terminal.end(10) == 130
    assert [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    lines = journal_lines(repo)
    assert bodies(lines, "model_interrupted")[0]["cause"] == "stopped"
    assert lines[-1]["body"] == {"reason": "stopped"}
    done = served.scripted(SCRIPTS, "run", "--task", "T-1", "--yes", "--json", cwd=repo)
    assert done.code == 0, done.err
    assert journal_lines(repo)[: len(lines)] == lines
    assert served.agent("sessions", "verify", cwd=repo).code == 0
    assert fingerprint(repo, ["memory"]) == before


def _until_asked(server: FaultyServer) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not server.asked("/v1/chat/completions"):
        assert time.monotonic() < deadline, "the model was never asked"
        time.sleep(0.01)  # polled: the server lives in a loop of its own
