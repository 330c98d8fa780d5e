"""The inbox's files: whole or not at all, the user's own, and nothing that stands in for one counts."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import DecisionRefused, StorageError, UsageError
from agent_workbench.core.ids import SessionId
from agent_workbench.subjects.inbox import adapter as local_inbox
from agent_workbench.subjects.inbox.adapter import LocalInbox
from agent_workbench.system.atomic_files import make_directories
from tests.contracts.test_inbox import SESSION, decision

NAME = f"P-14@{'0' * 32}.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "inbox"


@pytest.fixture
def inbox(folder: Path) -> LocalInbox:
    return LocalInbox(folder)


async def test_a_decision_is_one_private_file(inbox: LocalInbox, folder: Path) -> None:
    await inbox.put(decision())
    assert sorted(path.name for path in (folder / SESSION).iterdir()) == [NAME]
    assert (folder / SESSION / NAME).stat().st_mode & 0o777 == 0o600
    assert (folder / SESSION).stat().st_mode & 0o777 == 0o700
    await inbox.remove(decision())
    assert list(folder.iterdir()) == [], "nothing is left behind"


async def test_a_folder_that_goes_while_it_is_made_is_no_decision(
    inbox: LocalInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_directories
    failures = [FileExistsError(17, "there when it was to be made, and gone when it was looked at")]

    def make(folder: Path) -> None:
        if failures:
            raise failures.pop()
        made(folder)

    monkeypatch.setattr(local_inbox, "make_directories", make)
    await inbox.put(decision())
    assert await inbox.pending(SESSION) == (decision(),)


async def test_two_processes_have_one_inbox(inbox: LocalInbox, folder: Path) -> None:
    await inbox.put(decision())
    assert await LocalInbox(folder).pending(SESSION) == (decision(),)


@pytest.mark.parametrize("name", ["../../etc", "", ".", "x", f"{SESSION}/..", "20260102T030405-ABC234"])
async def test_a_name_that_leads_elsewhere_is_no_session(inbox: LocalInbox, folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a session id"):
        await inbox.pending(SessionId(name))
    with pytest.raises(UsageError):
        await inbox.put(decision(session=SessionId(name)))
    assert not folder.exists()


async def test_a_folder_that_is_a_link_is_refused(inbox: LocalInbox, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    await LocalInbox(elsewhere).put(decision())
    folder.mkdir()
    (folder / SESSION).symlink_to(elsewhere / SESSION)
    with pytest.raises(StorageError, match="symbolic link"):
        await inbox.pending(SESSION)
    with pytest.raises(StorageError, match="symbolic link"):
        await inbox.put(decision("P-15"))


def _link(path: Path) -> None:
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to(target)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _edit(path: Path, **fields: object) -> None:
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({**content, **fields}))


STAND_INS: dict[str, Callable[[Path], object]] = {
    "a link": _link,
    "a pipe": _pipe,
    "writable by others": lambda path: path.chmod(0o622),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "not text": lambda path: path.write_bytes(b"\xff\xfe"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "too large": lambda path: _edit(path, reason="x" * 2_000_000),
    "an unknown verdict": lambda path: _edit(path, verdict="allow"),
    "of the wrong type": lambda path: _edit(path, left="all"),
    "of another proposal": lambda path: path.rename(path.with_name(NAME.replace("14", "15"))),
    "of another session": lambda path: _edit(
        path, reference={"session": "20260103T030405-def567", "proposal": "P-14", "digest": "0" * 32}
    ),
    "with a digest that is none": lambda path: _edit(
        path, reference={"session": SESSION, "proposal": "P-14", "digest": "../x"}
    ),
    "a folder": _folder,
}


@pytest.mark.parametrize("kind", STAND_INS)
async def test_what_stands_in_for_a_decision_counts_for_nothing(inbox: LocalInbox, folder: Path, kind: str) -> None:
    await inbox.put(decision())
    await inbox.put(decision("P-20"))
    STAND_INS[kind](folder / SESSION / NAME)
    assert await inbox.pending(SESSION) == (decision("P-20"),)


@pytest.mark.skipif(os.geteuid() != 0, reason="machine lacks: a user who may give files away")
async def test_another_users_file_counts_for_nothing(inbox: LocalInbox, folder: Path) -> None:
    await inbox.put(decision())
    os.chown(folder / SESSION / NAME, 12345, -1)
    assert await inbox.pending(SESSION) == ()


async def test_a_writer_that_was_killed_leaves_nothing_that_counts(inbox: LocalInbox, folder: Path) -> None:
    (folder / SESSION).mkdir(parents=True)
    (folder / SESSION / ".0011223344556677.tmp").write_bytes(msgspec.json.encode(decision()))
    assert await inbox.pending(SESSION) == ()
    await inbox.put(decision())
    assert await inbox.pending(SESSION) == (decision(),)


async def test_the_second_is_told_of_the_first_even_if_that_cannot_be_read(inbox: LocalInbox, folder: Path) -> None:
    await inbox.put(decision())
    with pytest.raises(DecisionRefused, match="approved by ada@laptop at 2026-01-02"):
        await inbox.put(replace(decision(), reason="another"))
    (folder / SESSION / NAME).write_bytes(b"{")
    with pytest.raises(DecisionRefused, match="P-14 was decided already"):
        await inbox.put(decision())


async def test_a_decision_that_would_not_be_read_is_not_written(inbox: LocalInbox, folder: Path) -> None:
    with pytest.raises(UsageError, match="too long"):
        await inbox.put(replace(decision(), reason="x" * 2_000_000))
    assert not folder.exists()


async def test_a_folder_that_cannot_be_written_says_so(inbox: LocalInbox, folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(StorageError):
        await inbox.put(decision())
    assert await inbox.pending(SESSION) == ()


async def test_puts_and_removals_at_once_lose_nothing(inbox: LocalInbox) -> None:
    async def churn(number: int) -> None:
        mine = decision(f"P-{number}")
        for _ in range(20):
            await inbox.put(mine)
            assert mine in await inbox.pending(SESSION)
            await inbox.remove(mine)

    await asyncio.gather(*map(churn, range(4)))
    assert await inbox.pending(SESSION) == ()
