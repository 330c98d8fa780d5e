"""The demo without a terminal, end to end, and what its journal proves afterwards."""

import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.machine import Done, Machine, bodies, journal_lines, journal_path

NOT_CONFINED = "tests and commands are not confined here: "
pytestmark = pytest.mark.xdist_group("demo")

TRAILER = re.compile(r"^Agent-Journal: (\S+):(\d+):([0-9a-f]{64})$", re.MULTILINE)


class Demo(Struct, frozen=True):
    """A demo that has run once, for all tests here; none may change it."""

    machine: Machine
    repo: Path
    done: Done


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    machine = Machine(tmp_path_factory.mktemp("demo") / "machine", forks=True)
    repo = machine.folder / "shop"
    return Demo(machine, repo, machine.agent("demo", "--headless", "--json", "--folder", str(repo), cwd=machine.home))


@pytest.mark.slow
def test_it_ends_well_and_says_nothing_but_how(demo: Demo) -> None:
    assert demo.done.code == 0, demo.done.err
    *waited, ended = demo.done.err.splitlines()
    assert ended == "T-2 done: committed"
    told = ("the model server loads demo-model.gguf", NOT_CONFINED, "T-1: ", "T-2: ")
    assert all(line.startswith(told) for line in waited), "what it waits for, if that takes long"


def test_every_line_it_printed_is_an_event_that_stands_in_the_journal(demo: Demo) -> None:
    printed = demo.done.events
    lines = journal_lines(demo.repo)
    assert [(event["seq"], event["time"], event["kind"]) for event in printed] == [
        (line["seq"], line["time"], line["kind"]) for line in lines
    ]
    assert {event["session"] for event in printed} == {lines[0]["body"]["session"]}


def test_a_wrong_diff_then_a_reflexion_then_the_right_one(demo: Demo) -> None:
    kinds = ("patch_applied", "tests_finished", "reflexion_noted", "task_committed")
    told = []
    for event in demo.done.events:
        if event["kind"] == "tests_finished":
            passed = all(result["exit_code"] == 0 for result in event["body"]["results"])
            told.append(f"{event['body']['purpose']} {'passed' if passed else 'failed'}")
        elif event["kind"] in kinds:
            told.append(event["kind"])
    assert told == [
        *("baseline failed", "patch_applied", "after_diff failed", "reflexion_noted"),
        *("patch_applied", "after_diff passed", "task_committed"),
        *("baseline failed", "patch_applied", "after_diff passed", "task_committed"),
    ]


def test_two_commits_stand_on_two_branches_the_second_on_the_first(demo: Demo) -> None:
    git = demo.machine.git
    assert git(demo.repo, "rev-parse", "agent/T-2~1") == git(demo.repo, "rev-parse", "agent/T-1")
    assert git(demo.repo, "rev-parse", "agent/T-1~1") == git(demo.repo, "rev-parse", "main")
    assert "line.cents * line.quantity" in git(demo.repo, "show", "agent/T-1:shop/cart.py")
    assert git(demo.repo, "diff", "--name-only", "agent/T-1", "agent/T-2").split() == [
        "shop/cart.py",
        "tests/test_discount.py",
    ]


def test_each_commit_names_the_line_of_the_journal_that_let_it_through(demo: Demo) -> None:
    lines = journal_lines(demo.repo)
    for task in ("T-1", "T-2"):
        message = demo.machine.git(demo.repo, "log", "-1", "--format=%B", f"agent/{task}")
        (named,) = TRAILER.findall(message)
        line = lines[int(named[1])]
        assert (line["hash"], line["kind"]) == (named[2], "action_decided")
        assert line["body"]["verdict"] == "approve"
        assert lines[0]["body"]["session"] == named[0]
        assert message.startswith(f"[Agent] Complete {task}: ")


def test_the_checkout_is_as_it_was_written(demo: Demo) -> None:
    git = demo.machine.git
    assert git(demo.repo, "status", "--porcelain").split() == ["M", "memory/plans/PLAN.yaml"]
    assert git(demo.repo, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    before = demo.machine.folder / "before"
    git(demo.repo, "clone", "--quiet", "--no-hardlinks", "--branch", "main", ".", str(before))
    assert _files(demo.repo) == _files(before)


def test_the_plan_keeps_its_comments_and_says_what_is_done(demo: Demo) -> None:
    plan = (demo.repo / "memory/plans/PLAN.yaml").read_text()
    assert plan.count("status: done") == 2
    assert "# The plan of the demo. Edit it by hand as you like: comments and order are kept." in plan
    assert "# not merged yet? then T-2 starts from its commit" in plan


def test_sessions_are_listed_shown_and_green(demo: Demo) -> None:
    session = journal_lines(demo.repo)[0]["body"]["session"]
    listed = demo.machine.agent("sessions", "list", cwd=demo.repo)
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.startswith(session)
    assert "T-1, T-2 Give the cart a discount in percent  done" in listed.out
    shown = demo.machine.agent("sessions", "show", session[-6:], cwd=demo.repo)
    assert (shown.code, shown.err) == (0, "")
    assert "reflexion: I added the quantity to the price" in shown.out
    assert "its answers are scripted" in shown.out
    verified = demo.machine.agent("sessions", "verify", cwd=demo.repo)
    assert (verified.code, verified.err) == (0, "")
    assert verified.out.startswith("green")
    assert journal_lines(demo.repo)[-1]["hash"] in verified.out


def test_it_says_that_its_answers_are_scripted(demo: Demo) -> None:
    (observed,) = bodies(journal_lines(demo.repo), "model_observed")
    assert observed["facts"]["scripted"] is True


@pytest.mark.parametrize("where", [0.2, 0.5, 0.9])
def test_one_changed_byte_is_red_and_its_line_is_named(demo: Demo, tmp_path: Path, where: float) -> None:
    repo = tmp_path / "shop"
    shutil.copytree(demo.repo, repo, symlinks=True)
    path = journal_path(repo)
    data = bytearray(path.read_bytes())
    place = int(len(data) * where)
    data[place] = ord("x") if data[place] != ord("x") else ord("y")
    path.write_bytes(data)
    number = data[:place].count(b"\n") + 1
    verified = demo.machine.agent("sessions", "verify", cwd=repo)
    assert verified.code == 6
    assert verified.out == ""
    assert verified.err.startswith("RED")
    assert f"line {number}" in verified.err


def test_a_reader_that_stops_reading_is_no_error(demo: Demo) -> None:
    command = f"set -o pipefail; {sys.executable} -P -m agent_workbench sessions show | head -1"
    done = demo.machine.run(["bash", "-c", command], demo.repo)
    assert (done.code, done.err) == (0, "")


def _files(repo: Path) -> dict[str, str]:
    found = fingerprint(repo, besides=["memory"])
    return {name: what for name, what in found.items() if name.startswith("file ")}


def test_each_prompt_has_a_receipt_that_adds_up(demo: Demo) -> None:
    done = demo.machine.agent("sessions", "show", "--prompt", "5", "--json", "--text", cwd=demo.repo)
    assert (done.code, done.err) == (0, "")
    (receipt,) = done.events
    answered = [event["body"] for event in demo.done.events if event["kind"] == "model_answered"]
    figures = answered[4]["figures"]
    assert (receipt["number"], receipt["count"]) == (5, len(answered))
    assert (receipt["tokens"], receipt["cached"]) == (figures["prompt_tokens"], figures["cached_tokens"])
    parts = [row for row in receipt["rows"] if not row["inside"]]
    for name in ("tokens", "cached", "new", "again"):
        assert sum(row[name] for row in parts) == receipt[name], name
    assert receipt["again"] == 0, "the scripted model says the tokens that its text is read as"
    assert [message["role"] for message in receipt["messages"]][:3] == ["system", "user", "assistant"]
    assert receipt["messages"][2]["text"] == answered[0]["text"]


def test_the_receipt_is_a_table_for_people(demo: Demo) -> None:
    done = demo.machine.agent("sessions", "show", "--prompt", "last", cwd=demo.repo)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("Prompt 9 of 9")
    assert " · 0 re-read · " in lines[2]
    assert [line.split()[-1] for line in (lines[6], lines[7])] == ["rules", "task"]
    assert any("skill test-driven-development  (left out: less relevant" in line for line in lines)
    assert lines[-1].startswith("a summary of the steps frees up to ")


def test_a_prompt_that_is_not_there(demo: Demo) -> None:
    done = demo.machine.agent("sessions", "show", "--prompt", "99", cwd=demo.repo)
    assert (done.code, done.out) == (2, "")
    assert "has no prompt 99; its prompts are 1 to 9" in done.err


def test_it_is_the_same_when_it_is_made_again(demo: Demo) -> None:
    done = demo.machine.agent("replay", "--rerun", cwd=demo.repo)
    assert (done.code, done.err) == (0, "")
    *prompts, summed_up = done.out.splitlines()
    assert summed_up == "9 prompts, 9 identical"
    assert [line.split()[-1] for line in prompts] == ["identical"] * 9


def test_a_model_that_says_something_else_stops_the_comparison(demo: Demo) -> None:
    model = yaml.safe_load((demo.repo / ".agent.yml").read_text())["model"]["path"]
    done = demo.machine.agent("replay", "--against", model, "--json", cwd=demo.repo)
    first, summed_up = done.events
    assert done.code == 8
    assert (first["prompt"], first["identical"], first["remark"]) == (1, False, "")
    assert "-Thought: The failing test is about quantities" in first["diff"]
    assert summed_up == {"prompts": 1, "compared": 1, "identical": 0}
