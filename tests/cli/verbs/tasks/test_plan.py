"""`agent plan edit` with an editor that is a program, and the short forms of verbs."""

import shlex
import sys

import pytest

from tests.e2e.calc import PLAN, calc_repo
from tests.e2e.machine import Machine
from tests.e2e.terminal import CTRL_C, in_terminal

FILE = "memory/plans/PLAN.yaml"
EDITED = "memory/plans/PLAN.edited.yaml"


def editor(machine: Machine, program: str) -> dict[str, str]:
    """Return the environment in which a Python program edits the file `path`."""
    file = machine.folder / "editor.py"
    file.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n{program}\n")
    return {"EDITOR": shlex.join([sys.executable, str(file)])}


def test_what_holds_is_written(machine: Machine) -> None:
    repo = calc_repo(machine)
    added = "path.write_text(text + '  - {id: T-2, description: More}\\n')"
    done = machine.agent("plan", "edit", cwd=repo, environ=editor(machine, added))
    assert (done.code, done.out) == (0, "the plan is valid: 2 tasks\n"), done.said
    assert (repo / FILE).read_text() == PLAN + "  - {id: T-2, description: More}\n"


def test_what_does_not_hold_is_kept_beside_the_plan(machine: Machine) -> None:
    repo = calc_repo(machine)
    spoilt = "path.write_text(text.replace('id: T-1', 'id: 7'))"
    done = machine.agent("plan", "edit", cwd=repo, environ=editor(machine, spoilt))
    assert done.code == 2, done.said
    assert f"{FILE}:4:9: " in done.err
    assert f"your text is kept in {EDITED}" in done.err
    assert (repo / FILE).read_text() == PLAN
    assert (repo / EDITED).read_text() == PLAN.replace("id: T-1", "id: 7")


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), ("\x04", 2), ("n\n", 2)])
def test_what_is_given_up_at_the_question_is_kept_too(machine: Machine, key: str, code: int) -> None:
    repo = calc_repo(machine)
    machine.environ.update(editor(machine, "path.write_text(text.replace('id: T-1', 'id: 7'))"))
    with in_terminal(machine, "plan", "edit", cwd=repo) as terminal:
        terminal.until("edit it again? [y/N] ")
        terminal.type(key)
        terminal.until(f"kept in {EDITED}")
        assert "Traceback" not in terminal.shown
        assert terminal.end() == code
    assert (repo / FILE).read_text() == PLAN
    assert (repo / EDITED).read_text() == PLAN.replace("id: T-1", "id: 7")


def test_a_plan_that_does_not_hold_can_be_mended(machine: Machine) -> None:
    repo = calc_repo(machine, {FILE: PLAN.replace("id: T-1", "id: 7")})
    mended = "path.write_text(text.replace('id: 7', 'id: T-1'))"
    done = machine.agent("plan", "edit", cwd=repo, environ=editor(machine, mended))
    assert done.code == 0, done.said
    assert (repo / FILE).read_text() == PLAN


def test_what_another_changed_meanwhile_stays(machine: Machine) -> None:
    repo = calc_repo(machine)
    both = f"""
plan = pathlib.Path({str(repo / FILE)!r})
plan.write_text(plan.read_text().replace("- id: T-1", "- id: T-1\\n    status: blocked"))
path.write_text(text + '  - {{id: T-2, description: More}}\\n')
"""
    done = machine.agent("plan", "edit", cwd=repo, environ=editor(machine, both))
    assert done.code == 0, done.said
    shown = machine.agent("plan", "show", cwd=repo).out
    assert "T-1    blocked" in shown
    assert "T-2    pending" in shown


@pytest.mark.parametrize(
    ("program", "code", "told"), [("", 0, "nothing was changed"), ("sys.exit(3)", 4, "ended with exit code 3")]
)
def test_what_was_not_changed_or_given_up_changes_nothing(machine: Machine, program: str, code: int, told: str) -> None:
    repo = calc_repo(machine)
    done = machine.agent("plan", "edit", cwd=repo, environ=editor(machine, program))
    assert (done.code, told in done.said) == (code, True), done.said
    assert (repo / FILE).read_text() == PLAN
    assert not (repo / EDITED).exists()


def test_agent_new_is_agent_plan_new(machine: Machine) -> None:
    repo = calc_repo(machine)
    short, long = (machine.agent(*words, "a goal", cwd=repo) for words in (("new",), ("plan", "new")))
    assert (short.code, short.out, short.err) == (long.code, long.out, long.err)
    assert short.code == 5, "there is no model"


def test_an_editor_that_is_not_there_is_no_defect_of_the_workbench(machine: Machine) -> None:
    done = machine.agent("plan", "edit", cwd=calc_repo(machine), environ={"EDITOR": "no-such-editor"})
    assert (done.code, done.out) == (4, ""), done.said
    assert done.err.startswith("agent: no editor no-such-editor was found\n       set $EDITOR to your editor\n")


def test_where_nothing_is_approved_the_inbox_is_named(machine: Machine) -> None:
    repo = calc_repo(machine, {FILE: "version: 1\ntasks: []\n"})
    for verb in ("dispatch", "status"):
        done = machine.agent("plan", verb, cwd=repo)
        assert (done.code, "`agent inbox` shows a plan that waits" in done.out) == (0, True), done.said
