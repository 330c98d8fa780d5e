"""Questions that verbs ask at the terminal: yes, no, and Ctrl-C."""

from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import Machine
from tests.e2e.terminal import CTRL_C, in_terminal

AT_ONCE_SECONDS = 5.0
RISKY = {".agent.yml": "test_command: make everything\n"}
TRUST_QUESTION = "trust exactly this? [y/N] "


MERGE_QUESTION = "(T-1) into main? [y/N, d shows the diff] "


@pytest.fixture
def repo(served: Machine) -> Path:
    """Return a repository with a task that is done and not merged."""
    made = calc_repo(served)
    done = served.scripted(SCRIPTS, "run", "--task", "T-1", "--yes", cwd=made)
    assert done.code == 0, done.said
    return made


@pytest.mark.slow
def test_ctrl_c_at_the_merge_ends_it_at_once(served: Machine, repo: Path) -> None:
    before = fingerprint(repo)
    with in_terminal(served, "merge", "T-1", cwd=repo) as terminal:
        terminal.until(MERGE_QUESTION)
        terminal.type(CTRL_C)
        assert terminal.end(AT_ONCE_SECONDS) == 130
        assert "Traceback" not in terminal.shown
    assert fingerprint(repo) == before


@pytest.mark.slow
def test_a_merge_says_what_it_brings_and_shows_the_diff(served: Machine, repo: Path) -> None:
    before = fingerprint(repo)
    with in_terminal(served, "merge", "T-1", cwd=repo) as terminal:
        terminal.until(MERGE_QUESTION)
        for said in ("Merge T-1 into main", "It can be merged.", "Complete T-1", "1 file", "calc.py  +1 −1"):
            assert said in terminal.shown
        assert "left + right" not in terminal.shown
        terminal.shown = ""
        terminal.type("d\n")
        terminal.until(MERGE_QUESTION)
        assert "-    return left - right\r\n+    return left + right" in terminal.shown
        terminal.type("\x04")
        assert terminal.end(AT_ONCE_SECONDS) == 3
    assert fingerprint(repo) == before


@pytest.mark.parametrize(
    ("flag", "method", "parents"),
    [("--squash", "squash", "mine"), ("--rebase", "rebase", "mine"), ("--no-ff", "merge", "mine task")],
)
@pytest.mark.slow
def test_a_merge_is_made_by_the_method_that_a_flag_names(
    served: Machine, repo: Path, flag: str, method: str, parents: str
) -> None:
    served.git(repo, "commit", "--quiet", "--allow-empty", "--message", "Mine")
    names = {served.git(repo, "rev-parse", "main"): "mine", served.git(repo, "rev-parse", "agent/T-1"): "task"}
    with in_terminal(served, "merge", "T-1", flag, cwd=repo) as terminal:
        terminal.until(f"{method} {served.git(repo, 'rev-parse', 'agent/T-1')[:10]} {MERGE_QUESTION}")
        terminal.type("y\n")
        assert terminal.end() == 0
    found = served.git(repo, "show", "-s", "--format=%P", "main").split()
    assert " ".join(names[each] for each in found) == parents
    assert served.agent("merge", "T-1", flag, cwd=repo).code != 0, "it is merged"


@pytest.mark.slow
def test_a_fast_forward_that_is_impossible_is_refused(served: Machine, repo: Path) -> None:
    served.git(repo, "commit", "--quiet", "--allow-empty", "--message", "Mine")
    before = fingerprint(repo)
    with in_terminal(served, "merge", "T-1", "--ff-only", cwd=repo) as terminal:
        terminal.until("cannot be fast-forwarded")
        assert terminal.end() == 4
    assert fingerprint(repo) == before


@pytest.mark.slow
def test_the_name_of_a_branch_controls_no_terminal(served: Machine, repo: Path) -> None:
    served.git(repo, "switch", "--quiet", "--create", "a\x9b31m\u202eb")
    with in_terminal(served, "merge", "T-1", cwd=repo) as terminal:
        terminal.until("into a‹9B›31m‹202E›b? [y/N, d shows the diff] ")
        assert not {"\x9b", "\u202e"}.intersection(terminal.shown)
        terminal.type("n\n")
        assert terminal.end() == 3


@pytest.mark.parametrize("move", ["branch", "commit", "task"])
@pytest.mark.slow
def test_a_merge_is_asked_for_again_where_it_would_be_another_one(served: Machine, repo: Path, move: str) -> None:
    main, agent = (served.git(repo, "rev-parse", each) for each in ("main", "agent/T-1"))
    with in_terminal(served, "merge", "T-1", cwd=repo) as terminal:
        terminal.until(MERGE_QUESTION)
        if move == "branch":
            served.git(repo, "switch", "--quiet", "--create", "other")
        elif move == "commit":
            served.git(repo, "commit", "--quiet", "--allow-empty", "--message", "Mine")
        else:
            tree = served.git(repo, "rev-parse", f"{agent}^{{tree}}")
            again = served.git(repo, "commit-tree", tree, "-p", agent, "-m", "Again")
            served.git(repo, "update-ref", "refs/heads/agent/T-1", again)
        before = fingerprint(repo)
        terminal.shown = ""
        terminal.type("y\n")
        terminal.until("? [y/N, d shows the diff] ")
        assert "nothing was merged" in terminal.shown
        assert f"into {'other' if move == 'branch' else 'main'}? [y/N" in terminal.shown
        assert fingerprint(repo) == before
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (served.git(repo, "rev-parse", "main") == main) is (move == "branch")
    assert served.git(repo, "merge-base", "--is-ancestor", agent, "HEAD") == ""


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize(
    ("keys", "code", "trusted"), [("y\n", 0, True), ("\n", 3, False), ("n\n", 3, False), (CTRL_C, 130, False)]
)
def test_trust_is_asked_for(machine: Machine, keys: str, code: int, *, trusted: bool) -> None:
    repo = calc_repo(machine, RISKY)
    with in_terminal(machine, "trust", cwd=repo) as terminal:
        terminal.until(TRUST_QUESTION)
        assert "make everything" in terminal.shown
        terminal.type(keys)
        assert terminal.end(AT_ONCE_SECONDS) == code
    shown = machine.agent("trust", "--show", cwd=repo)
    assert ("nothing left to trust" in shown.out) is trusted


def test_trust_where_nobody_can_be_asked_takes_a_yes_in_the_command_alone(machine: Machine) -> None:
    repo = calc_repo(machine, RISKY)
    parked = machine.agent("trust", cwd=repo)
    assert parked.code == 3
    assert "make everything" in parked.out
    assert "agent trust --yes" in parked.err
    assert "make everything" in machine.agent("trust", "--show", cwd=repo).out
    done = machine.agent("trust", "--yes", cwd=repo)
    assert (done.code, done.err) == (0, "")
    assert "nothing left to trust" in machine.agent("trust", cwd=repo).out


@pytest.mark.slow
def test_the_command_alone_opens_the_workbench_in_a_repository_and_asks_for_a_verb_elsewhere(machine: Machine) -> None:
    below = calc_repo(machine) / "memory"
    with in_terminal(machine, cwd=below) as terminal:
        terminal.until("write them: y")
    with in_terminal(machine, cwd=machine.home) as terminal:
        terminal.until("the following arguments are required: VERB")
        assert terminal.end(AT_ONCE_SECONDS) == 2
    assert machine.agent(cwd=below).code == 2
