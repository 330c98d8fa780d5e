"""Repositories of other people: the work is done on a branch, and nothing that is theirs is touched."""

import importlib.util
import os
import pty
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import CALC, FINISH, REFLEXION, SCRIPTS, calc_repo, diff_step
from tests.e2e.machine import WAIT_SECONDS, Machine, bodies, journal_lines, write_files

BESIDES = ("memory", ".agent.yml")
TEST = """\
from platformdirs import all_user_dirs


def test_all_user_dirs():
    found = all_user_dirs("app")
    assert len(found) == 5
    assert all(each.endswith("app") or "app/" in each for each in found)
"""
FUNCTION = '''

def all_user_dirs(appname: str) -> tuple[str, ...]:
    """Return the folders of a user in which an application keeps its own."""
    dirs = PlatformDirs(appname)
    return (dirs.user_data_dir, dirs.user_config_dir, dirs.user_cache_dir, dirs.user_state_dir, dirs.user_log_dir)
'''


@pytest.mark.slow
def test_a_task_is_done_in_a_package_of_the_registry(served: Machine) -> None:
    repo = _package(served)
    module = (repo / "src/platformdirs/__init__.py").read_text()
    accept = "python -m pytest -q -p no:cacheprovider tests/test_all_user_dirs.py"
    before = fingerprint(repo, BESIDES)

    done = served.agent("init", cwd=repo)
    assert (done.code, done.err) == (0, "")
    assert "wrote .agent.yml" in done.out
    with (repo / ".agent.yml").open("a") as settings:
        settings.write(f"python: {sys.executable}\n")
    done = served.agent("plan", "add", "List the folders of a user", "--accept", accept, cwd=repo)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("T-1    pending      List the folders of a user")
    refused = served.agent("run", "--task", "T-1", "--yes", cwd=repo)
    assert refused.code == 4
    assert "agent trust" in refused.err
    done = served.agent("trust", "--yes", cwd=repo)
    assert (done.code, done.err) == (0, "")
    assert f"python: {sys.executable} (runs the tests)" in done.out

    write = diff_step(
        {"src/platformdirs/__init__.py": module},
        {"src/platformdirs/__init__.py": module + FUNCTION, "tests/test_all_user_dirs.py": TEST},
    )
    done = served.scripted({"T-1": (write, FINISH)}, "run", "--task", "T-1", "--yes", "--json", cwd=repo)
    assert done.code == 0, done.said
    assert fingerprint(repo, BESIDES) == before
    assert served.git(repo, "diff", "--name-only", "main", "agent/T-1").split() == [
        "src/platformdirs/__init__.py",
        "tests/test_all_user_dirs.py",
    ]
    assert served.git(repo, "show", "agent/T-1:tests/test_all_user_dirs.py") == TEST.rstrip("\n")
    assert served.git(repo, "log", "-1", "--format=%an <%ae>", "agent/T-1") == "Ada Lovelace <ada@example.org>"
    assert "T-1    done" in served.agent("plan", "show", cwd=repo).out
    assert served.agent("sessions", "verify", cwd=repo).code == 0


def _package(machine: Machine) -> Path:
    """Make a repository of a package that is installed here, with every kind of change the user has not committed."""
    spec = importlib.util.find_spec("platformdirs")
    assert spec is not None
    assert spec.origin is not None
    repo = machine.folder / "platformdirs"
    package = repo / "src/platformdirs"
    shutil.copytree(Path(spec.origin).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    readme = "# platformdirs\r\n\r\nFolders.\r\n"
    write_files(repo, {"README.md": readme, ".gitignore": "__pycache__/\n", "pyproject.toml": "[project]\n"})
    machine.git(repo, "init", "--quiet")
    machine.git(repo, "add", "--all")
    machine.git(repo, "commit", "--quiet", "--message", "Import")
    (package / "android.py").write_text("# being rewritten\n")
    machine.git(repo, "stash", "--quiet")
    (package / "macos.py").write_bytes(b"# staged\n")
    machine.git(repo, "add", "src/platformdirs/macos.py")
    (package / "macos.py").write_bytes(b"# staged, then changed\r\n")
    (package / "windows.py").unlink()
    (package / "unix.py").chmod(0o755)
    write_files(repo, {"notes.txt": "mine\n", "tests/test_mine.py": "def test_mine():\n    assert False\n"})
    return repo


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "merged"), [("y\n", True), ("n\n", False)])
def test_a_merge_asks_at_the_terminal(served: Machine, answer: str, merged: bool) -> None:
    repo = calc_repo(served)
    assert served.scripted(SCRIPTS, "run", "--task", "T-1", "--yes", cwd=repo).code == 0
    (repo / "notes.txt").write_text("mine\n")
    before = fingerprint(repo, BESIDES)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "agent_workbench", "merge", "T-1"]
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        process = subprocess.Popen(command, cwd=repo, env=served.environ, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        terminal.write(answer.encode())
        assert process.wait(WAIT_SECONDS) == (0 if merged else 3)
        assert b"(T-1) into main? [y/N, d shows the diff]" in terminal.read(4096)
    after = fingerprint(repo, BESIDES)
    assert (served.git(repo, "rev-parse", "main") == served.git(repo, "rev-parse", "agent/T-1")) is merged
    assert (after == before) is not merged
    assert after["file notes.txt"] == before["file notes.txt"]


@pytest.mark.slow
def test_wrong_diffs_until_the_limits_leave_nothing_but_a_record(served: Machine) -> None:
    limits = ".agent.yml"
    repo = calc_repo(served, {limits: "limits: {max_reflexion_retries: 1}\n"})
    wrong = [CALC.replace("left - right", f"left {sign} right") for sign in ("*", "%")]
    texts = (CALC, *wrong)
    steps = [diff_step({"calc.py": old}, {"calc.py": new}) for old, new in pairwise(texts)]
    scripts = {"T-1": (steps[0], REFLEXION, steps[1]), "T-1:reflexion": (REFLEXION,)}
    before = fingerprint(repo, BESIDES)

    done = served.scripted(scripts, "run", "--task", "T-1", "--yes", "--json", cwd=repo)
    assert done.code == 1, done.said
    assert "1 reflexions did not help" in done.err
    assert fingerprint(repo, BESIDES) == before
    plan = (repo / "memory/plans/PLAN.yaml").read_text()
    assert "status: failed" in plan
    assert "# My plan; it is mine." in plan
    assert "# the first of all" in plan
    assert "# quick" in plan
    lines = journal_lines(repo)
    assert bodies(lines, "task_finished")[0]["status"] == "failed"
    assert len(bodies(lines, "patch_applied")) == 2
    assert not served.git(repo, "branch", "--list", "agent/*")
    kept = [each["checkpoint"]["ref"] for each in bodies(lines, "checkpoint_taken")]
    assert list(dict.fromkeys(served.git(repo, "show", f"{ref}:calc.py") + "\n" for ref in kept)) == wrong
    worktree = Path(bodies(lines, "task_started")[0]["workspace"]["path"])
    assert (worktree / "calc.py").read_text() == CALC
    assert served.agent("sessions", "verify", cwd=repo).code == 0
    shown = served.agent("sessions", "show", cwd=repo)
    assert "rolled back" in shown.out


@pytest.mark.slow
def test_a_task_that_failed_can_be_tried_again_in_a_new_session(served: Machine) -> None:
    repo = calc_repo(served, {".agent.yml": "limits: {max_reflexion_retries: 0}\n"})
    wrong = diff_step({"calc.py": CALC}, {"calc.py": CALC.replace("left - right", "left * right")})
    assert served.scripted({"T-1": (wrong,)}, "run", "--task", "T-1", "--yes", cwd=repo).code == 1
    done = served.scripted(SCRIPTS, "run", "--task", "T-1", "--yes", "--json", cwd=repo)
    assert done.code == 0, done.said
    (committed,) = done.of_kind("task_committed")
    assert "left + right" in served.git(repo, "show", f"{committed['branch']}:calc.py")
    assert "status: done" in (repo / "memory/plans/PLAN.yaml").read_text()
