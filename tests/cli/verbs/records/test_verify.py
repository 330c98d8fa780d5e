"""`agent sessions verify` and `agent verify`, on the session of a demo that somebody changed in some way."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.journal.line_format import decode_line, encode_line
from agent_workbench.adapters.journal.reader import verify_journal
from agent_workbench.core.history.journal_proof import Proof, prove_journal
from tests.adapters.git.user import User
from tests.cli.verbs.records.conftest import FinishedDemo
from tests.e2e.machine import Done, Machine

pytestmark = pytest.mark.xdist_group("finished demo")

GREEN, UNPROVABLE, RED = 0, 1, 6
# What hides commits from those who ask git without care.
ODD_SETTINGS = {
    "i18n.logOutputEncoding": "UTF-16",
    "grep.patternType": "perl",
    "transfer.hideRefs": "refs/agent",
    "log.showSignature": "true",
}


class Shop(Struct, frozen=True):
    """A copy of the repository in which the demo ran."""

    machine: Machine
    user: User

    @property
    def sessions(self) -> Path:
        return self.user.root / "memory" / "sessions"

    @property
    def session(self) -> str:
        return min(each.name for each in self.sessions.iterdir())

    @property
    def journal(self) -> Path:
        return self.sessions / self.session / "journal.jsonl"

    @property
    def lines(self) -> list[bytes]:
        return self.journal.read_bytes().splitlines(keepends=True)

    def agent(self, *words: str) -> Done:
        return self.machine.agent(*words, cwd=self.user.root)

    def prove(self, *words: str) -> dict[str, Any]:
        done = self.agent(*words, "--json")
        found: dict[str, Any] = json.loads(done.out)
        codes = {"green": GREEN, "red": RED, "not provable": UNPROVABLE}
        assert done.code == codes[found["proof"]], done
        return found

    def session_proof(self) -> dict[str, Any]:
        return self.prove("sessions", "verify", self.session)

    def commit_proof(self, revision: str) -> dict[str, Any]:
        return self.prove("verify", revision)

    def object(self, kind: str, data: bytes) -> str:
        """Store an object as it is, however odd."""
        path = self.user.write("odd-object", data)
        oid = self.user.git("hash-object", "-t", kind, "-w", "--literally", str(path))
        path.unlink()
        return oid

    def commit_like(self, revision: str, message: bytes) -> str:
        """Store a commit that is another one with this message."""
        head = self.user.git("cat-file", "commit", revision).encode().partition(b"\n\n")[0]
        return self.object("commit", head + b"\n\n" + message)

    def rewrite(self, change: Callable[[int, dict[str, Any]], None]) -> None:
        """Change bodies of the journal, and hash all of it anew."""
        prev, lines = "", []
        for raw in self.lines:
            line = decode_line(raw.rstrip(b"\n"))
            change(line.seq, line.body)
            made, prev = encode_line(line.seq, line.time, line.kind, line.body, prev)
            lines.append(made)
        self.journal.write_bytes(b"".join(lines))

    def drop_all_anchors(self) -> None:
        for line in self.user.git("for-each-ref", "--format=%(refname)", "refs/agent", "refs/heads/agent").split():
            self.user.git("update-ref", "-d", line)
        self.user.git("reflog", "expire", "--expire=now", "--all")
        shutil.rmtree(self.user.root / ".git" / "worktrees", ignore_errors=True)


EVENTS = 113
"""Events of the demo's session."""
ANCHORS = FIRST, SECOND, FIRST_COMMIT, THIRD, LAST = (25, 41, 56, 90, 105)
"""Events that its checkpoints and commits name."""


def later(_: int, body: dict[str, Any]) -> None:
    """Change a body of most lines a little."""
    if "seconds" in body:
        body["seconds"] = 1.5


@pytest.fixture
def shop(finished_demo: FinishedDemo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    finished_demo.restore()
    monkeypatch.setenv("HOME", str(finished_demo.machine.home))
    shutil.copytree(finished_demo.kept / "shop", tmp_path / "shop", symlinks=True)
    return Shop(finished_demo.machine, User(tmp_path / "shop"))


def test_a_journal_is_proved_up_to_its_newest_anchor(shop: Shop) -> None:
    found = shop.session_proof()
    assert (found["proof"], found["events"], found["through"], len(found["anchors"])) == (
        "green",
        EVENTS,
        LAST,
        len(ANCHORS),
    )
    said = shop.agent("sessions", "verify")
    commit = shop.user.git("rev-parse", "agent/T-2")[:10]
    assert said.out.splitlines()[1].strip() == (
        f"events 0-{LAST} are proved by commit {commit}; events {LAST + 1}-{EVENTS - 1} are not anchored"
    )


def test_a_journal_cut_at_any_line_is_green_behind_its_last_anchor_only(shop: Shop) -> None:
    repository = Repository(shop.user.root, shop.user.root.parent / "state")
    lines, session = shop.lines, shop.session
    found = asyncio.run(repository.stored_commits().anchors({session})).of(session)
    for count in range(len(lines) + 1):
        shop.journal.write_bytes(b"".join(lines[:count]))
        proof = prove_journal(found.anchors[0].session, verify_journal(shop.journal.parent), found, {})
        assert proof.proof is (Proof.GREEN if count > LAST else Proof.RED), count
        assert proof.through == max((seq for seq in ANCHORS if seq < count), default=-1)


@pytest.mark.parametrize("count", [30, 0])
def test_a_cut_or_empty_journal_is_red(shop: Shop, count: int) -> None:
    shop.journal.write_bytes(b"".join(shop.lines[:count]))
    found = shop.session_proof()
    assert found["proof"] == "red"
    assert any("its end was cut off" in each for each in found["problems"])


def test_a_journal_or_folder_that_is_missing_is_red(shop: Shop) -> None:
    session = shop.session
    shop.journal.unlink()
    assert shop.session_proof()["problems"][0].startswith("there is no ")
    shutil.rmtree(shop.sessions / session)
    assert shop.prove("sessions", "verify", session)["proof"] == "red"
    assert shop.agent("sessions", "verify", "20200101T000000-aaaaaa").code == 2
    assert shop.commit_proof("agent/T-1")["trailers"][0]["missing"] == f"the journal of session {session} is not here"


@pytest.mark.parametrize("left", ["everything", "checkpoints", "commits", "reflogs"])
def test_a_journal_that_was_hashed_anew_is_red_while_one_anchor_is_left(shop: Shop, left: str) -> None:
    shop.rewrite(later)
    refs = shop.user.git("for-each-ref", "--format=%(refname)", "refs/agent", "refs/heads/agent").split()
    gone = {"everything": "nothing", "checkpoints": "refs/heads", "commits": "refs/agent", "reflogs": "refs"}[left]
    if left == "reflogs":
        shop.user.git("switch", "--quiet", "--detach", "agent/T-2")
        shop.user.git("switch", "--quiet", "main")
    for each in refs:
        if each.startswith(gone):
            shop.user.git("update-ref", "-d", each)
    assert shop.session_proof()["proof"] == "red"


def test_without_an_anchor_nothing_is_provable_and_nothing_is_green(shop: Shop) -> None:
    shop.drop_all_anchors()
    for lines in (shop.lines, shop.lines[:30], []):
        shop.journal.write_bytes(b"".join(lines))
        found = shop.session_proof()
        assert (found["proof"], found["through"], found["problems"]) == ("not provable", -1, [])
    said = shop.agent("sessions", "verify")
    assert (said.out, said.err.startswith("not provable 0 events")) == ("", True)


def test_one_changed_body_is_red_and_what_is_before_it_stays_proved(shop: Shop) -> None:
    lines = shop.lines
    lines[60] = lines[60].replace(b'"body":{', b'"body": {', 1)
    shop.journal.write_bytes(b"".join(lines))
    found = shop.session_proof()
    assert (found["proof"], found["through"]) == ("red", FIRST_COMMIT)
    assert [each.partition(":")[0] for each in found["problems"]] == ["line 61"]


@pytest.mark.parametrize("how", ["missing", "changed", "link"])
def test_a_blob_that_is_missing_or_changed_is_red(shop: Shop, how: str) -> None:
    text = "x" * 5_000

    def long(seq: int, body: dict[str, Any]) -> None:
        if seq == LAST + 5:
            body["reason"] = {"blob": sha256(text.encode()).hexdigest(), "bytes": len(text)}

    shop.rewrite(long)
    blob = shop.user.write(f"memory/sessions/{shop.session}/blobs/{sha256(text.encode()).hexdigest()}", text)
    assert shop.session_proof()["proof"] == "green", "behind the last anchor"
    if how == "changed":
        blob.write_text("y" * 5_000)
    else:
        blob.rename(blob.with_name("elsewhere"))
    if how == "link":
        blob.symlink_to("elsewhere")
    found = shop.session_proof()
    assert (found["proof"], found["through"]) == ("red", LAST)


def test_a_forged_trailer_is_red(shop: Shop) -> None:
    message = f"Mine\n\nAgent-Journal: {shop.session}:54:{'0' * 64}\n".encode()
    shop.user.git("branch", "forged", shop.commit_like("main", message))
    assert "names event 54 with the hash 000000000000…" in shop.session_proof()["problems"][0]
    assert shop.commit_proof("forged")["proof"] == "red"
    shop.user.git("branch", "-D", "forged")
    shop.user.git("branch", "forged", shop.commit_like("main", message.replace(b":54:", b":9999:")))
    assert "was cut off" in shop.session_proof()["problems"][0]
    shop.user.git("branch", "-f", "forged", shop.commit_like("main", message.replace(b":54:", b":-1:")))
    assert "names no event" in " ".join(shop.session_proof()["problems"])


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("value", ["../../x:3:" + "0" * 64, "20260101T000000-abc234:3:xyz", "/etc:1:2", "\x1b[2J"])
def test_a_trailer_that_names_no_session_is_red_and_reaches_no_file(shop: Shop, value: str) -> None:
    shop.user.git("branch", "odd", shop.commit_like("main", f"Odd\n\nAgent-Journal: {value}\n".encode()))
    found = shop.commit_proof("odd")
    assert (found["proof"], len(found["problems"]), found["trailers"]) == ("red", 1, [])
    assert "\x1b" not in shop.agent("verify", "odd").said
    assert shop.session_proof()["proof"] == "green"


def test_a_trailer_of_a_session_that_is_not_here_proves_nothing(shop: Shop) -> None:
    message = f"Odd\n\nAgent-Journal: 20260101T000000-abc234:3:{'0' * 64}\n".encode()
    shop.user.git("branch", "odd", shop.commit_like("main", message))
    assert shop.commit_proof("odd")["proof"] == "not provable"
    assert shop.commit_proof("main")["missing"].startswith("its message has no Agent-Journal trailer")


def test_refs_of_checkpoints_that_moved_are_red_and_lost_ones_are_said(shop: Shop) -> None:
    ref = f"refs/agent/{shop.session}/{SECOND}"
    before = shop.user.git("rev-parse", ref)
    shop.user.git("update-ref", ref, "main")
    assert shop.session_proof()["problems"] == [
        f"{ref} is at {shop.user.git('rev-parse', 'main')[:10]}, the journal has {before[:10]}"
    ]
    shop.user.git("update-ref", "-d", ref)
    found = shop.session_proof()
    assert (found["proof"], found["notes"]) == ("green", ["checkpoints that are not in this repository: 1"])


def test_history_that_cannot_be_read_hides_no_anchor_that_can(shop: Shop) -> None:
    (shop.user.root / ".git/refs/heads/garbage").write_text("garbage\n")
    (shop.user.root / ".git/refs/heads/broken").write_text(f"{'12' * 20}\n")
    assert shop.session_proof()["proof"] == "green"
    start = shop.user.git("rev-parse", "main")
    (shop.user.root / ".git/objects" / start[:2] / start[2:]).unlink()
    shutil.copytree(shop.sessions, shop.user.root / "kept")
    found = shop.agent("sessions", "verify", "--json")
    assert found.code != GREEN or json.loads(found.out)["through"] == 102


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("how", ["grafts", "replace", "commit-graph", "settings"])
def test_what_git_is_told_besides_its_objects_counts_for_nothing(shop: Shop, how: str) -> None:
    tip, first, start = (shop.user.git("rev-parse", each) for each in ("agent/T-2", "agent/T-1", "main"))
    if how == "grafts":
        shop.user.write(".git/info/grafts", f"{tip} {start}\n")
    elif how == "replace":
        other = shop.commit_like(tip, b"Nothing to see\n")
        shop.user.git("replace", tip, other)
    elif how == "settings":
        for name, value in ODD_SETTINGS.items():
            shop.user.git("config", name, value)
    else:
        shop.user.git("commit-graph", "write", "--reachable")
        path = shop.user.root / ".git/objects/info/commit-graph"
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:100] + b"\0" * 400)
    shop.user.git("update-ref", "-d", "refs/heads/agent/T-1")
    found = shop.session_proof()
    assert (found["proof"], found["through"], len(found["anchors"])) == ("green", LAST, len(ANCHORS))
    assert shop.commit_proof("agent/T-2")["parents"] == [first]


def test_an_object_under_another_ones_name_is_no_commit(shop: Shop) -> None:
    commit = shop.user.git("rev-parse", "agent/T-1")
    other = shop.commit_like(commit, shop.user.git("log", "-1", "--format=%B", commit).encode() + b"\nMore\n")
    folder = shop.user.root / ".git/objects"
    place = folder / commit[:2] / commit[2:]
    place.chmod(0o644)
    place.write_bytes((folder / other[:2] / other[2:]).read_bytes())
    assert shop.agent("verify", commit).code == 2, "git itself finds no such commit"
    found = shop.session_proof()
    assert (len(found["anchors"]), found["notes"]) == (
        4,
        [f"commit {commit[:10]} is too large, unreadable, or does not match its id"],
    )


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize("where", ["branch", "merge", "squash", "rebase", "tag", "withdrawn"])
def test_anchors_are_found_wherever_a_commit_went(shop: Shop, where: str) -> None:
    git = shop.user.git
    git("restore", "memory")
    git("commit", "--quiet", "--allow-empty", "-m", "On main")
    match where:
        case "merge":
            git("merge", "--quiet", "--no-ff", "-m", "Merge", "agent/T-2")
        case "squash":
            git("merge", "--quiet", "--squash", "agent/T-2")
            git("commit", "--quiet", "--no-edit")
        case "rebase":
            git("cherry-pick", "agent/T-1", "agent/T-2")
        case "tag":
            git("tag", "-a", "-m", "A tag", "v1", "agent/T-2")
        case "withdrawn":
            git("update-ref", f"refs/agent/{shop.session}/withdrawn/{'1' * 12}", "agent/T-2")
        case _:
            git("branch", "kept", "agent/T-2")
    for ref in git("for-each-ref", "--format=%(refname)", "refs/heads/agent", "refs/agent").split():
        if "withdrawn" not in ref:
            git("update-ref", "-d", ref)
    git("reflog", "expire", "--expire=now", "--all")
    shutil.rmtree(shop.user.root / ".git/worktrees")
    found = shop.session_proof()
    assert (found["proof"], found["through"]) == ("green", LAST)


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize(
    "what", [b"\0", b"\x1b]52;c;eA==\x07", b"\xff\xfe\x80", b"x" * 10_000_000, b"\n" * 100_000], ids=range(5)
)
def test_hostile_messages_of_commits_are_read_and_shown_as_text(shop: Shop, what: bytes) -> None:
    anchor = f"Agent-Journal: {shop.session}:54:{'0' * 64}\n".encode()
    shop.user.git("update-ref", "refs/heads/odd", shop.commit_like("main", b"Odd " + what + b"\n\n" + anchor))
    done = shop.agent("verify", "odd")
    assert done.code == RED
    assert "\x1b" not in done.said
    assert len(done.said) < 10_000
    found = shop.agent("sessions", "verify")
    assert found.code in {GREEN, RED}
    assert "\x1b" not in found.said


def test_a_commit_shows_its_approvals_and_what_was_shown(shop: Shop) -> None:
    found = shop.commit_proof("agent/T-1")
    (trailer,) = found["trailers"]
    assert (found["proof"], trailer["task"], trailer["tree"]) == ("green", "T-1", found["tree"])
    assert [trailer["base"]] == found["parents"]
    assert [(each["what"].partition(" ")[0], each["by"]) for each in trailer["approvals"]] == [
        ("diff", "policy:diff=auto"),
        ("diff", "policy:diff=auto"),
        ("commit:", "policy:commit=auto"),
    ]
    assert trailer["models"], "the models that answered"
    assert (trailer["worker"], trailer["signer"]) == ("", ""), "no other machine shares the session"
    assert all(len(each["shown"]) == 64 and each["paths"] == ["shop/cart.py"] for each in trailer["approvals"])
    said = shop.agent("verify", "agent/T-1").out
    assert "task T-1: Make the cart's total count quantities" in said
    assert f"tree {found['tree']} on {found['parents'][0][:10]} is what was approved" in said
    for revision in ("no-such-thing", "@{u}", "HEAD@{99}", "HEAD:calc.py"):
        assert shop.agent("verify", revision).code == 2, revision


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize("how", ["tree", "message", "author", "parent", "other-approval", "two"])
def test_a_commit_that_was_amended_with_its_trailer_kept_is_red(shop: Shop, how: str) -> None:
    git = shop.user.git
    git("restore", "memory")
    git("switch", "--quiet", "agent/T-2" if how == "parent" else "agent/T-1", "--ignore-other-worktrees")
    message = git("log", "-1", "--format=%B")
    match how:
        case "tree":
            shop.user.write("shop/cart.py", "import os\n")
            git("commit", "--quiet", "--all", "--amend", "--no-edit")
        case "message":
            git("commit", "--quiet", "--amend", "-m", message.replace("Complete", "Improve"))
        case "author":
            git("commit", "--quiet", "--amend", "--no-edit", "--author", "Eve <eve@example.org>")
        case "parent":
            git("checkout", "--quiet", "-B", "moved", "main")
            git("commit", "--quiet", "--allow-empty", "-m", "Another")
            git("cherry-pick", "agent/T-1")
        case "other-approval":
            other = git("log", "-1", "--format=%B", "agent/T-2").rpartition("\n\n")[2]
            git("commit", "--quiet", "--amend", "-m", f"{message.rpartition(chr(10) * 2)[0]}\n\n{other}")
        case "two":
            other = git("log", "-1", "--format=%B", "agent/T-2").splitlines()[-1]
            git("commit", "--quiet", "--amend", "-m", f"{message}{other}\n")
    assert shop.commit_proof("agent/T-1")["proof" if how != "parent" else "commit"] != "green"
    found = shop.commit_proof("HEAD")
    assert found["proof"] == ("red" if how != "parent" else "not provable"), found
    if how == "parent":
        assert found["trailers"][0]["missing"].startswith(
            "it was rebased or squashed since its approval: its change is"
        )
    assert shop.session_proof()["proof"] == "green", "the journal itself is as it was"


@pytest.mark.parametrize(("squashed", "proof"), [("T-1", "not provable"), ("T-2", "not provable"), ("other", "red")])
def test_a_squash_is_not_provable_and_another_change_under_its_trailer_is_red(
    shop: Shop, squashed: str, proof: str
) -> None:
    git = shop.user.git
    git("restore", "memory")
    git("commit", "--quiet", "--allow-empty", "-m", "Mine")
    anchors = [git("log", "-1", "--format=%B", f"agent/{each}").splitlines()[-1] for each in ("T-1", "T-2")]
    git("merge", "--quiet", "--squash", "agent/T-1" if squashed == "other" else f"agent/{squashed}")
    if squashed == "other":
        shop.user.write("shop/cart.py", "import os\n")
        git("add", "shop/cart.py")
    kept = anchors if squashed == "T-2" else anchors[:1]
    git("commit", "--quiet", "-m", "fix: as one", "-m", "\n".join(kept))
    found = shop.commit_proof("HEAD")
    assert found["proof"] == proof, found
    assert len(found["trailers"]) == len(kept)


def test_a_commit_and_a_journal_forged_together_are_red_by_the_checkpoints(shop: Shop) -> None:
    def nobody(_: int, body: dict[str, Any]) -> None:
        if body.get("by") == "policy:commit=auto":
            body["by"] = "user"

    def others(_: int, body: dict[str, Any]) -> None:
        if body.get("by") == "policy:diff=auto":
            body["by"] = "user"

    for change in (nobody, others):
        shop.rewrite(change)
        line = json.loads(shop.lines[FIRST_COMMIT])
        old = shop.user.git("log", "-1", "--format=%B", "agent/T-1").rpartition("Agent-Journal:")[0]
        message = f"{old}Agent-Journal: {shop.session}:{FIRST_COMMIT}:{line['hash']}\n".encode()
        shop.user.git("update-ref", "refs/heads/agent/T-1", shop.commit_like("agent/T-1", message))
        shop.user.git("update-ref", "-d", "refs/heads/agent/T-2")
        shop.user.git("reflog", "expire", "--expire=now", "--all")
        shutil.rmtree(shop.user.root / ".git/worktrees", ignore_errors=True)
        assert shop.session_proof()["proof"] == "red"
        assert shop.commit_proof("agent/T-1")["proof"] == "red"
        whole = shop.lines
        shop.journal.write_bytes(b"".join(whole[:55]))
        assert shop.commit_proof("agent/T-1")["proof"] == "red", "what contradicts it was cut off"
        shop.journal.write_bytes(b"".join(whole))


def test_damage_behind_an_approval_is_said_and_denies_nothing_that_another_anchor_proves(shop: Shop) -> None:
    lines = shop.lines
    shop.journal.write_bytes(b"".join(lines[: THIRD + 3]))
    found = shop.commit_proof("agent/T-1")
    assert found["proof"] == "green", "the third checkpoint speaks for it too"
    assert any("its end was cut off" in each for each in found["trailers"][0]["notes"])
    assert shop.commit_proof("agent/T-2")["proof"] == "red"
    shop.journal.write_bytes(b"".join(lines) + b'{"v":1')
    assert shop.session_proof()["notes"] == ["its last line is unfinished (6 bytes) and is ignored"]


def test_an_event_that_is_no_approval_approves_nothing(shop: Shop) -> None:
    for seq in (FIRST_COMMIT - 1, FIRST - 2, 0):
        line = json.loads(shop.lines[seq])
        message = f"Mine\n\nAgent-Journal: {shop.session}:{seq}:{line['hash']}\n".encode()
        shop.user.git("update-ref", "refs/heads/mine", shop.commit_like("agent/T-1", message))
        (trailer,) = shop.commit_proof("mine")["trailers"]
        assert trailer["problems"] == [f"event {seq} is no approval of a commit"]


def test_a_fork_proves_the_events_that_it_began_with(shop: Shop) -> None:
    # Notes of sessions that were begun here are kept for the folder they were begun in.
    home = Shop(shop.machine, User(shop.machine.folder / "shop"))
    parent = home.session
    child = json.loads(home.agent("sessions", "fork", parent, "--at", "85", "--json").out)["session"]
    try:
        assert home.prove("sessions", "verify", child)["proof"] == "green"
        shutil.copytree(home.sessions / child, shop.sessions / child)
        shop.user.git("fetch", "--quiet", str(home.user.root), "+refs/agent/*:refs/agent/*")
    finally:
        shutil.rmtree(home.sessions / child)
    for ref in shop.user.git("for-each-ref", "--format=%(refname)", f"refs/agent/{parent}", "refs/heads/agent").split():
        shop.user.git("update-ref", "-d", ref)
    shop.user.git("reflog", "expire", "--expire=now", "--all")
    shutil.rmtree(shop.user.root / ".git/worktrees")
    found = shop.prove("sessions", "verify", parent)
    assert (found["proof"], len(found["anchors"])) == ("green", 1), "the task that it was made in is based on a commit"
    assert found["through"] > 70
    assert f"of session {child}, which has the same events" in found["by"]
    whole = shop.lines
    shop.journal.write_bytes(b"".join(whole[:30]))
    assert "its end was cut off" in shop.prove("sessions", "verify", parent)["problems"][-1]
    shop.journal.write_bytes(b"".join(whole))
    shop.rewrite(later)
    assert shop.prove("sessions", "verify", parent)["proof"] == "red"
    assert shop.prove("sessions", "verify", child)["proof"] == "green"
