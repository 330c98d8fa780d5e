"""A remote that is down, slow, full or lies: refused with a sentence, and nothing of the user's changes."""

import asyncio
import gc
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.git import remote_transport as transport_module
from agent_workbench.core.errors import ConfigError, JournalError, StorageError, WorkbenchError
from agent_workbench.core.events import CheckpointTaken
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.workspace import Checkpoint
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.machines import AUDIT, BRANCH, Journal, Machine, Remote
from tests.adapters.git.user import GIT, SESSION, TASK, User

Lie = Callable[[Remote, Journal], None]


@pytest.fixture
async def pushed(here: Machine, journal: Journal, remote: Remote) -> Journal:
    """A journal with one checkpoint and one commit, at the remote."""
    workspace = await journal.begin(here)
    await journal.change(workspace, {"src/app.py": "print('one')\n"})
    await journal.commit(workspace)
    await workspace.release(keep=True)
    await here.refs.push(await here.head(journal, 3, 1))
    return journal


@pytest.fixture
def unchanged(here: Machine, there: Machine) -> Iterator[None]:
    """Fail unless checkouts and all refs of the other machine stay as they are."""
    before = [fingerprint(each.user.root) for each in (here, there)], _work_refs(there)
    yield
    assert ([fingerprint(each.user.root) for each in (here, there)], _work_refs(there)) == before


def _work_refs(machine: Machine) -> str:
    """Return the session's refs, without the audit ref, which only moves forward to signed heads."""
    return machine.user.git("for-each-ref", f"refs/agent/{SESSION}", "refs/heads")


def commit_of(remote: Remote, tree: str, *words: str) -> str:
    words = ("-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", tree, "-m", "forged", *words)
    return remote.git(*words)


def tree_of(remote: Remote, line: str, content: bytes = b"x\n") -> str:
    """Store a tree with one entry, unchecked as an attacker would."""
    mode, name = line.split(" ", 1)
    blob = remote.git("hash-object", "-w", "--stdin", stdin=content)
    raw = f"{mode} {name}\0".encode() + bytes.fromhex(blob)
    return remote.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw)


def another_checkpoint(remote: Remote, journal: Journal) -> None:
    remote.git("update-ref", f"refs/agent/{SESSION}/2", commit_of(remote, tree_of(remote, "100644 evil.py")))


def lost_checkpoint(remote: Remote, journal: Journal) -> None:
    for ref in remote.refs():
        if ref.startswith(f"refs/agent/{SESSION}/") or ref == f"refs/heads/{BRANCH}":
            remote.git("update-ref", "-d", ref)


def blob(remote: Remote, journal: Journal) -> None:
    remote.git("update-ref", f"refs/agent/{SESSION}/7", remote.git("hash-object", "-w", "--stdin", stdin=b"x"))


def dot_git(remote: Remote, journal: Journal) -> None:
    _named(remote, journal, "100644 .git")


def dot_git_in_capitals(remote: Remote, journal: Journal) -> None:
    _named(remote, journal, "100755 .GIT")


def way_out(remote: Remote, journal: Journal) -> None:
    _named(remote, journal, "100644 ..")


def _named(remote: Remote, journal: Journal, line: str) -> None:
    """Let also the journal name a commit with this tree: whoever signs may be careless."""
    tree = tree_of(remote, line)
    commit = CommitId(commit_of(remote, tree, "-p", remote.refs()["refs/heads/main"]))
    ref = f"refs/agent/{SESSION}/{len(journal.recorded)}"
    remote.git("update-ref", ref, commit)
    journal.add(CheckpointTaken(1, Checkpoint(ref, commit, tree)))


def unsigned_head(remote: Remote, journal: Journal) -> None:
    message = remote.git("log", "-1", "--format=%B", AUDIT)
    _audit(remote, message.partition('"signature"')[0] + '"signature":""}\n')


def forged_head(remote: Remote, journal: Journal) -> None:
    _audit(remote, remote.git("log", "-1", "--format=%B", AUDIT).replace('"fence":1', '"fence":9'))


def no_head(remote: Remote, journal: Journal) -> None:
    _audit(remote, "Nothing")


def two_heads(remote: Remote, journal: Journal) -> None:
    line = remote.git("log", "-1", "--format=%B", AUDIT).splitlines()[-1]
    _audit(remote, f"Two\n\n{line}\n{line}\n")


def _audit(remote: Remote, message: str) -> None:
    tree = remote.git("rev-parse", f"{AUDIT}^{{tree}}")
    words = ("-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", tree, "-p", AUDIT, "-F", "-")
    remote.git("update-ref", AUDIT, remote.git(*words, stdin=message.encode()))


def audit_of_other_history(remote: Remote, journal: Journal) -> None:
    remote.git("update-ref", AUDIT, "refs/heads/main")


LIES: tuple[tuple[Lie, str], ...] = (
    (another_checkpoint, "and the journal has"),
    (lost_checkpoint, "has no commit"),
    (blob, "is a blob"),
    (dot_git, r"\.git|hasDotgit"),
    (dot_git_in_capitals, r"\.git|hasDotgit"),
    (way_out, r"'\.\.'|hasDotdot"),
    (unsigned_head, "does not count"),
    (forged_head, "does not count"),
    (no_head, "carries no signed head"),
    (two_heads, "carries no signed head"),
    (audit_of_other_history, "carries no signed head"),
)


@pytest.mark.usefixtures("unchanged")
async def test_what_a_remote_cannot_rightly_have_is_refused_and_nothing_comes(
    there: Machine, pushed: Journal, remote: Remote, tmp_path: Path
) -> None:
    for lie, said in LIES:
        lying, journal = Remote(tmp_path / f"{lie.__name__}.git"), Journal(list(pushed.recorded))
        shutil.copytree(remote.path, lying.path)
        lie(lying, journal)
        refs = there.repository.session_refs(str(lying.path), there.signatures, "here")
        with pytest.raises((JournalError, StorageError), match=said):
            await refs.fetch(SESSION, journal.recorded)
    assert there.user.git("rev-parse", AUDIT) == remote.refs()[AUDIT], "it is signed"
    there.user.git("cat-file", "-e", AUDIT)


async def test_a_remote_that_was_set_back_is_found_by_each_machine_that_saw_more(
    here: Machine, there: Machine, pushed: Journal, remote: Remote
) -> None:
    first = remote.git("rev-parse", AUDIT)
    pushed.add(pushed.recorded[2].event)
    await here.refs.push(await here.head(pushed, 4, 1))
    await there.refs.heads(SESSION)
    remote.git("update-ref", AUDIT, first)
    for machine in (here.again(), there.again()):
        with pytest.raises(JournalError, match="does not continue"):
            await machine.refs.heads(SESSION)
        with pytest.raises(JournalError, match="does not continue"):
            await machine.refs.push(await machine.head(pushed, 4, 5))
    remote.git("update-ref", "-d", AUDIT)
    with pytest.raises(JournalError, match="does not continue"):
        await there.refs.take_over(await there.head(pushed, 4, 5), pushed.recorded)


async def test_a_database_with_less_or_other_than_the_signed_heads_is_refused(
    there: Machine, pushed: Journal, remote: Remote
) -> None:
    refs = remote.refs()
    cut, changed = pushed.recorded[:-1], [*pushed.recorded[:-1], replace(pushed.recorded[-1], hash="0" * 64)]
    for rows, said in ((cut, "no event"), (changed, "another event")):
        with pytest.raises(JournalError, match=f"the database has {said} there"):
            await there.refs.take_over(await there.head(pushed, 1, 2), rows)
    assert remote.refs() == refs


async def test_names_outside_of_the_session_never_come(there: Machine, pushed: Journal, remote: Remote) -> None:
    evil = commit_of(remote, tree_of(remote, "100644 evil.py"))
    names = ("refs/heads/evil", "refs/tags/evil", f"refs/agent/{SESSION}/evil", f"refs/agent/{SESSION}/AT/{TASK}")
    for name in (*names, f"refs/agent/{SESSION}/99", f"{AUDIT}x", "refs/agent/audit/evil"):
        remote.git("update-ref", name, evil)
    await there.refs.fetch(SESSION, pushed.recorded)
    assert evil not in there.user.git("for-each-ref")


async def test_a_symbolic_ref_at_the_remote_leads_nobody_to_another_branch(
    here: Machine, pushed: Journal, remote: Remote
) -> None:
    main = remote.refs()["refs/heads/main"]
    remote.git("symbolic-ref", f"refs/agent/{SESSION}/2", "refs/heads/main")
    with pytest.raises(JournalError, match="is a symbolic ref"):
        await here.again().refs.push(await here.head(pushed, 3, 1))
    assert remote.refs()["refs/heads/main"] == main


async def test_a_symbolic_ref_here_leads_no_fetch_to_the_users_branch(there: Machine, pushed: Journal) -> None:
    there.user.git("branch", "mine")
    there.user.git("symbolic-ref", f"refs/agent/{SESSION}/2", "refs/heads/mine")
    there.user.git("symbolic-ref", AUDIT, "refs/heads/mine")
    before = fingerprint(there.user.root)
    with pytest.raises(JournalError):  # its own audit ref is no session's
        await there.refs.fetch(SESSION, pushed.recorded)
    there.user.git("symbolic-ref", "-d", AUDIT)
    await there.refs.fetch(SESSION, pushed.recorded)
    assert fingerprint(there.user.root) == before


@pytest.mark.usefixtures("unchanged")
async def test_huge_objects_are_not_stored(
    there: Machine, pushed: Journal, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is small as it is sent and large when it is unpacked, and a pack that is large itself."""
    tree = tree_of(remote, "100644 zeros", b"\0" * 3_000_000)
    remote.git("update-ref", f"refs/agent/{SESSION}/8", commit_of(remote, tree))
    with monkeypatch.context() as patch:
        patch.setattr(transport_module, "MAX_FILE_BYTES", 2_000_000)
        with pytest.raises(JournalError, match="an object of 3,000,000 bytes"):
            await there.refs.fetch(SESSION, pushed.recorded)
    tree = tree_of(remote, "100644 noise", os.urandom(3_000_000))
    remote.git("update-ref", f"refs/agent/{SESSION}/8", commit_of(remote, tree))
    with monkeypatch.context() as patch:
        patch.setattr(transport_module, "MAX_PACK_BYTES", 1_000_000)
        with pytest.raises(StorageError, match="fetch"):
            await there.refs.fetch(SESSION, pushed.recorded)


@pytest.mark.usefixtures("unchanged")
async def test_a_remote_that_is_away_full_or_closed_says_so(
    here: Machine, pushed: Journal, remote: Remote, tmp_path: Path
) -> None:
    head = await here.head(pushed, 3, 1)
    remote.path.rename(tmp_path / "away")
    with pytest.raises(StorageError, match="does not appear to be a git repository"):
        await here.again().refs.push(head)
    assert [each.seq for each in await here.refs.heads(SESSION)] == [3], "as it was seen last"
    (tmp_path / "away").rename(remote.path)
    pushed.add(pushed.recorded[2].event)
    remote.git("config", "receive.denyDeletes", "true")
    remote.git("config", "receive.maxInputSize", "10")
    with pytest.raises(StorageError):
        await here.refs.push(await here.head(pushed, 4, 1))


@pytest.mark.usefixtures("unchanged")
async def test_a_remote_that_never_answers_costs_a_bounded_time(
    here: Machine, pushed: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "LIST_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x.git"
        with pytest.raises(StorageError, match="did not end within"):
            await here.repository.session_refs(url, here.signatures, "here").push(await here.head(pushed, 3, 1))


async def test_a_push_that_is_cancelled_does_not_wait_for_the_remote(
    here: Machine, pushed: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x.git"
        refs = here.repository.session_refs(url, here.signatures, "here")
        pushing = asyncio.create_task(refs.push(await here.head(pushed, 3, 1)))
        connection, _ = await asyncio.to_thread(server.accept)
        pushing.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait({pushing})
        connection.close()
    assert pushing.cancelled()
    del pushing
    gc.collect()
    assert not caplog.records, "an error that nobody asked for"


@pytest.mark.usefixtures("unchanged")
async def test_a_remote_that_sends_names_without_end_is_ended(
    here: Machine, pushed: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "_MAX_LIST_BYTES", 100)
    with pytest.raises(WorkbenchError, match="more than 100 bytes"):
        await here.again().refs.push(await here.head(pushed, 3, 1))


async def test_nothing_that_the_repository_or_a_remote_on_this_disk_configures_runs(
    here: Machine, pushed: Journal, remote: Remote, tmp_path: Path
) -> None:
    canary, user = tmp_path / "canary", here.user
    evil = tmp_path / "evil.git"
    subprocess.run([GIT, "init", "--quiet", "--bare", str(evil)], check=True)
    user.git("config", f"url.{evil}.insteadOf", str(remote.path))
    user.git("config", f"url.{evil}.pushInsteadOf", str(remote.path))
    user.git("config", "remote.origin.receivepack", f"touch {canary}; git-receive-pack")
    user.git("config", "remote.origin.uploadpack", f"touch {canary}; git-upload-pack")
    user.git("config", "core.sshCommand", f"touch {canary}")
    user.git("config", "core.hooksPath", str(tmp_path / "hooks"))
    user.git("config", "core.alternateRefsCommand", f"touch {canary}; true")
    user.git("config", "core.fsmonitor", f"touch {canary}")
    for folder in (tmp_path / "hooks", remote.path / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in ("pre-push", "reference-transaction", "pre-receive", "update", "post-update", "post-receive"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
            (folder / name).chmod(0o755)
    other = tmp_path / "other.git"
    subprocess.run([GIT, "init", "--quiet", "--bare", str(other)], check=True)
    (remote.path / "objects/info/alternates").write_text(f"{other}/objects\n")
    remote.git("config", "core.alternateRefsCommand", f"touch {canary}; true")
    remote.git("config", "uploadpack.packObjectsHook", f"touch {canary}; true")
    pushed.add(pushed.recorded[2].event)
    machine = here.again()
    await machine.refs.push(await here.head(pushed, 4, 1))
    await machine.refs.fetch(SESSION, pushed.recorded)
    assert not canary.exists()
    assert User(evil).git("--git-dir", str(evil), "for-each-ref") == ""


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ext::sh -c touch% canary", "no address"),
        ("git://127.0.0.1/x", "no address"),
        ("--upload-pack=touch", "no address"),
        ("http://example.org/x.git", "unencrypted"),
        ("https://ada:s3cret@example.org/x.git", "has credentials in it"),
        ("https://s3cret@example.org/x.git", "has credentials in it"),
        ("nowhere", "has no remote nowhere"),
    ],
)
async def test_addresses_that_run_programs_or_tell_secrets_are_refused(
    here: Machine, journal: Journal, address: str, said: str
) -> None:
    refs = here.repository.session_refs(address, here.signatures, "here")
    with pytest.raises(ConfigError, match=said) as refused:
        await refs.push(replace(await here.head(journal, -1, 1)))
    assert "s3cret" not in f"{refused.value}{refused.value.advice}"
