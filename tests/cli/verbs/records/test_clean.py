"""`agent clean` on the repository of a demo: what is listed, what goes, what stays, and what proofs say afterwards."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.history.leftovers import Leftover, LeftoverKind, select_leftovers
from agent_workbench.system.locks import FileLock
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import User
from tests.cli.verbs.records.conftest import FinishedDemo
from tests.e2e.machine import Done, Machine

GREEN, UNPROVABLE = 0, 1
PARKED, FAILED, USAGE = 3, 1, 2

pytestmark = pytest.mark.xdist_group("finished demo")


class Place(Struct, frozen=True):
    """The repository in which the demo ran: T-1 and T-2 are done and not merged."""

    machine: Machine
    user: User

    @property
    def session(self) -> str:
        (found,) = (self.user.root / "memory" / "sessions").iterdir()
        return found.name

    @property
    def journal(self) -> Path:
        return self.user.root / "memory" / "sessions" / self.session

    def worktree(self, task: str) -> Path:
        (folder,) = (self.machine.state / "worktrees").iterdir()
        return folder / f"agent-{task}"

    def agent(self, *words: str) -> Done:
        return self.machine.agent(*words, cwd=self.user.root)

    def clean(self, *words: str) -> Done:
        return self.agent("clean", "--yes", *words)

    def listed(self, *words: str) -> dict[str, Any]:
        found = json.loads(self.agent("clean", "--json", *words).out)
        return {each["name"]: each for each in found}

    def refs(self) -> list[str]:
        return self.user.git("for-each-ref", "--format=%(refname)", "refs/agent", "refs/heads/agent").split()


@pytest.fixture
def place(finished_demo: FinishedDemo, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    finished_demo.restore()
    monkeypatch.setenv("HOME", str(finished_demo.machine.home))
    return Place(finished_demo.machine, User(finished_demo.repo))


@pytest.mark.slow
def test_what_there_is_is_listed_and_nothing_goes_unasked(place: Place) -> None:
    before = fingerprint(place.user.root), place.refs()
    found = place.listed()
    assert list(found) == ["agent/T-1", "agent/T-2", f"refs/agent/{place.session}", place.session]
    assert found["agent/T-1"]["state"] == "not merged, 1 commit, worktree"
    assert found[place.session]["state"].startswith("T-1, T-2, done, last used ")
    assert all(each["size_bytes"] > 0 for each in found.values())
    assert not any(each["safe"] or each["kept"] for each in found.values())
    done = place.agent("clean")
    assert done.code == 0
    assert "`agent clean all` removes 0 items, 0 kB" in done.out
    assert place.agent("clean", "agent/T-1").code == PARKED
    assert (fingerprint(place.user.root), place.refs()) == before


@pytest.mark.slow
def test_merged_branches_and_old_sessions_go_and_the_rest_stays(place: Place) -> None:
    session = place.session
    place.user.git("merge", "--quiet", "--ff-only", "agent/T-1")
    before = fingerprint(place.user.root, ["memory"])
    assert place.listed()["agent/T-1"]["state"] == "merged, worktree"
    assert place.clean("all").out == "removed agent/T-1\n"
    assert not place.worktree("T-1").exists()
    assert place.worktree("T-2").is_dir()
    assert "refs/heads/agent/T-1" not in place.refs()
    assert fingerprint(place.user.root, ["memory"]) == before
    assert place.agent("sessions", "verify").code == GREEN
    safe = [name for name, each in place.listed("--days", "0").items() if each["safe"]]
    assert safe == [f"refs/agent/{session}", session]
    assert place.clean("all", "--days", "0").code == 0
    assert place.refs() == ["refs/heads/agent/T-2"]
    assert list((place.user.root / "memory" / "sessions").iterdir()) == []
    assert fingerprint(place.user.root, ["memory"]) == before
    # The commit of T-2 still names an event of the journal: not provable, and not red.
    for words in (("verify", "agent/T-2"), ("sessions", "verify", session)):
        proof = place.agent(*words)
        assert proof.code == UNPROVABLE
        assert proof.err.startswith("not provable ")
        assert "`agent clean` removed its journal on " in proof.err
    # Its branch is no orphan whose owner never began, and it is not removed by a new start.
    assert "never began" not in place.agent("doctor").out


def test_without_any_anchor_a_journal_is_not_provable(place: Place) -> None:
    assert place.clean("1-3").code == 0
    proof = place.agent("sessions", "verify")
    assert proof.code in (GREEN, UNPROVABLE)  # a reflog may still hold an anchor
    place.user.git("reflog", "expire", "--expire=now", "--all")
    proof = place.agent("sessions", "verify")
    assert proof.code == UNPROVABLE
    assert "`agent clean` removed anchors of it on " in proof.err


def test_a_changed_journal_is_red_while_one_anchor_is_left(place: Place) -> None:
    assert place.clean("agent/T-1", f"refs/agent/{place.session}").code == 0
    journal = place.journal / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:60]))
    assert place.agent("sessions", "verify").code == 6


def test_a_removed_journal_that_comes_back_is_judged_again(place: Place, tmp_path: Path) -> None:
    session, folder = place.session, place.journal
    kept = {each.relative_to(folder): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    assert place.clean(session).code == 0
    for name, data in kept.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    assert place.agent("sessions", "verify", session).code == GREEN
    (folder / "journal.jsonl").write_bytes(kept[Path("journal.jsonl")].replace(b"quantit", b"Quantit"))
    assert place.agent("sessions", "verify", session).code == 6


def hold_session(place: Place) -> FileLock:
    return FileLock(place.journal / "lock", "pid 1 on here")


def hold_task(place: Place) -> FileLock:
    (folder,) = (place.machine.state / "worktrees").iterdir()
    return FileLock(folder / "locks" / "T-1.lock", "pid 1 on here")


@pytest.mark.parametrize(
    ("hold", "stays"),
    [
        (hold_session, ["agent/T-1", "agent/T-2", "refs/agent/{}", "{}"]),
        (hold_task, ["agent/T-1"]),
    ],
)
def test_what_a_live_session_uses_stays(place: Place, hold: Callable[[Place], FileLock], stays: list[str]) -> None:
    names = [each.format(place.session) for each in stays]
    place.user.git("merge", "--quiet", "--ff-only", "agent/T-2")
    before = place.refs()
    with hold(place):
        found = place.listed("--days", "0")
        assert [name for name, each in found.items() if "pid 1 on here" in each["kept"]] == names
        for name in names:
            refused = place.clean(name)
            assert refused.code == USAGE
            assert "cannot be removed" in refused.err
        if hold is hold_session:
            place.clean("all", "--days", "0")
            assert place.refs() == before
            assert place.journal.is_dir()


def edit_file(place: Place) -> str:
    (place.worktree("T-1") / "shop" / "cart.py").write_text("mine\n")
    return "shop/cart.py in its worktree has changes that are in no commit"


def add_file(place: Place) -> str:
    (place.worktree("T-1") / "notes.txt").write_text("mine\n")
    return "notes.txt in its worktree has changes that are in no commit"


def remove_file(place: Place) -> str:
    (place.worktree("T-1") / "shop" / "cart.py").unlink()
    return "shop/cart.py in its worktree has changes that are in no commit"


def lock_worktree(place: Place) -> str:
    place.user.git("worktree", "lock", str(place.worktree("T-1")))
    return "its worktree is locked (git worktree lock)"


def commit_on_top(place: Place) -> str:
    # A test may stand in the worktree: its own git, as the user would use it there.
    user = User(place.worktree("T-1"))
    user.write("mine.txt", "mine\n")
    user.commit("Mine")
    return "it has commits that the workbench did not make"


def check_out(place: Place) -> str:
    place.user.git("worktree", "remove", "--force", str(place.worktree("T-1")))
    place.user.git("checkout", "--quiet", "agent/T-1")
    return f"it is checked out in {place.user.root}/.git"


@pytest.mark.parametrize("trouble", [edit_file, add_file, remove_file, lock_worktree, commit_on_top, check_out])
@pytest.mark.slow(quick=2)
def test_work_that_would_be_lost_stays(place: Place, trouble: Callable[[Place], str]) -> None:
    place.user.git("merge", "--quiet", "--ff-only", "agent/T-1")
    why = trouble(place)
    before = fingerprint(place.user.root, ["memory"]), place.refs()
    assert place.listed()["agent/T-1"]["kept"] == why
    assert place.clean("agent/T-1").code == USAGE
    assert place.clean("all").out == "nothing was removed\n"
    assert (fingerprint(place.user.root, ["memory"]), place.refs()) == before


def test_bytecode_in_a_worktree_does_not_keep_it(place: Place) -> None:
    place.user.git("merge", "--quiet", "--ff-only", "agent/T-1")
    (place.worktree("T-1") / "__pycache__").mkdir(exist_ok=True)
    (place.worktree("T-1") / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert place.listed()["agent/T-1"]["kept"] == ""


def test_what_others_made_is_not_listed(place: Place) -> None:
    place.user.git("branch", "agent/mine")
    place.user.git("branch", "agent/T-9")
    head = place.user.git("rev-parse", "HEAD")
    others = ("refs/agent/notes", "refs/agent/other-tool/1", "refs/agent/20261122T213435-ABCDEF/1")
    session = place.session
    for ref in others:
        place.user.git("update-ref", ref, head)
    before = place.refs()
    assert len(place.listed()) == 4
    place.clean("1-4")
    gone = [ref for ref in before if ref not in place.refs()]
    assert gone
    assert all("T-1" in ref or "T-2" in ref or ref.startswith(f"refs/agent/{session}/") for ref in gone)
    assert {"refs/heads/agent/mine", "refs/heads/agent/T-9", *others} <= set(place.refs())


def test_a_squashed_branch_counts_as_merged(place: Place) -> None:
    message = place.user.git("show", "-s", "--format=%B", "agent/T-1")
    place.user.git("merge", "--quiet", "--squash", "agent/T-1")
    place.user.git("commit", "--quiet", "--message", message)
    assert place.listed()["agent/T-1"]["state"] == "merged, worktree"


def test_an_unfinished_session_is_not_in_all(place: Place) -> None:
    journal = place.journal / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:20]))
    found = place.listed("--days", "0")
    assert "stopped" in found[place.session]["state"]
    assert not any(each["safe"] for each in found.values())


ITEMS = (
    Leftover(LeftoverKind.BRANCH, "agent/T-1", "merged", safe=True),
    Leftover(LeftoverKind.BRANCH, "agent/T-2", "merged", safe=True, kept="in use"),
    Leftover(LeftoverKind.SESSION, "20261122T213435-abcdef", "over"),
)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["all"], [0]),
        (["1"], [0]),
        (["3", "agent/T-1", "1"], [2, 0]),
        (["20261122T213435-abcdef"], [2]),
        (["1-1"], [0]),
        ([], []),
    ],
)
def test_words_select_items(words: list[str], names: list[int]) -> None:
    assert select_leftovers(ITEMS, words) == tuple(ITEMS[name] for name in names)


@pytest.mark.parametrize(
    "word", ["0", "4", "2", "1-2", "3-1", "1-9", "-1", "1-", "agent/T-3", "", "*", "１", "9" * 400, "agent/T-2"]
)
def test_words_that_name_nothing_or_something_in_use_are_refused(word: str) -> None:
    with pytest.raises(UsageError):
        select_leftovers(ITEMS, [word])
