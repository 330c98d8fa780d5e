"""Anchors are found whatever else a hostile repository holds: one bad object hides no history but its own."""

import os
import struct
import zlib
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path

import pytest

from agent_workbench.adapters.git.plumbing import GitProgram
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.history.journal_proof import FoundAnchors
from tests.adapters.git.user import SESSION, User

COMMITS = 4
BAD = "bc" * 20
FORGED = f"tree {BAD}\n\nWork\n\nAgent-Journal: {SESSION}:77:{77:064x}\n".encode()


async def anchors(repository: Repository) -> FoundAnchors:
    return await repository.stored_commits().anchors({SESSION})


def seqs(found: FoundAnchors) -> list[int]:
    return sorted(each.seq for each in found.anchors)


@pytest.fixture(autouse=True)
def history(user: User) -> None:
    """Commits that each name an event of the session; only the branch reaches all of them."""
    for seq in range(COMMITS):
        user.git("commit", "--quiet", "--allow-empty", "-m", f"Work\n\nAgent-Journal: {SESSION}:{seq}:{seq:064x}")
    user.git("reflog", "expire", "--expire=now", "--all")


def loose(user: User, stored: bytes) -> None:
    """Store compressed bytes as the object `BAD`, and point a branch to it."""
    folder = user.root / ".git/objects" / BAD[:2]
    folder.mkdir(exist_ok=True)
    (folder / BAD[2:]).write_bytes(stored)
    (user.root / ".git/refs/heads/bad").write_text(f"{BAD}\n")


def packed(user: User, kind: int, base: bytes, delta: bytes) -> None:
    """Store a delta as the object `BAD` in a pack of its own, and point a branch to it."""
    body = bytes([kind << 4 | len(delta)]) + base + zlib.compress(delta)
    data = b"PACK" + struct.pack(">LL", 2, 1) + body
    data += sha1(data, usedforsecurity=False).digest()
    name = bytes.fromhex(BAD)
    index = b"\xfftOc" + struct.pack(">L", 2) + struct.pack(">256L", *(int(first >= name[0]) for first in range(256)))
    index += name + b"\0" * 4 + struct.pack(">L", 12) + data[-20:]
    folder = user.root / ".git/objects/pack"
    (folder / "pack-bad.pack").write_bytes(data)
    (folder / "pack-bad.idx").write_bytes(index + sha1(index, usedforsecurity=False).digest())
    (user.root / ".git/refs/heads/bad").write_text(f"{BAD}\n")


BAD_OBJECTS: dict[str, Callable[[User], None]] = {
    "no compressed data": lambda user: loose(user, os.urandom(400)),
    "longer than it says": lambda user: loose(user, zlib.compress(b"commit 12\0" + b"a" * 5_000_000)),
    "another content than its id says": lambda user: loose(user, zlib.compress(b"commit %d\0" % len(FORGED) + FORGED)),
    "a delta on itself": lambda user: packed(user, 6, b"\0", b"\x05\x05\x05hello"),
    "huge by its header": lambda user: loose(user, zlib.compress(b"commit 90000000000\0aaa")),
}


@pytest.mark.parametrize("make", BAD_OBJECTS.values(), ids=BAD_OBJECTS.keys())
async def test_a_bad_object_at_a_branch_hides_no_anchor(
    user: User, repository: Repository, make: Callable[[User], None]
) -> None:
    make(user)
    found = await anchors(repository)
    assert seqs(found) == list(range(COMMITS))
    assert any("bcbcbcbcbc" in note or "all of the history" in note for note in found.notes)


async def test_an_empty_or_foreign_pack_hides_no_anchor(user: User, repository: Repository) -> None:
    folder = user.root / ".git/objects/pack"
    for name, data in (("empty", b""), ("noise", b"\xff" * 2_000)):
        (folder / f"pack-{name}.idx").write_bytes(data)
        (folder / f"pack-{name}.pack").write_bytes(data)
    assert await anchors(repository) == FoundAnchors((await anchors(repository)).anchors)
    assert seqs(await anchors(repository)) == list(range(COMMITS))


async def test_a_shallow_file_hides_no_anchor(user: User, repository: Repository) -> None:
    (user.root / ".git/shallow").write_text(f"{user.head()}\n")
    assert seqs(await anchors(repository)) == list(range(COMMITS))


async def test_a_shallow_clone_is_read_as_far_as_it_goes(user: User, tmp_path: Path) -> None:
    clone = User(tmp_path / "clone")
    clone.git("clone", "--quiet", "--depth", "2", f"file://{user.root}", ".")
    found = await anchors(Repository(clone.root, tmp_path / "state"))
    assert seqs(found) == [COMMITS - 2, COMMITS - 1]
    assert any("all of the history" in note for note in found.notes)


async def test_alternates_that_lead_to_themselves_hide_no_anchor(user: User, repository: Repository) -> None:
    objects = user.root / ".git/objects"
    (objects / "info").mkdir(exist_ok=True)
    (objects / "info/alternates").write_text(f"{objects}\n{objects}/../objects\n")
    assert seqs(await anchors(repository)) == list(range(COMMITS))


async def test_a_cut_pack_is_said(user: User, repository: Repository) -> None:
    user.git("gc", "--quiet")
    (pack,) = (user.root / ".git/objects/pack").glob("*.pack")
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:100])
    found = await anchors(repository)
    assert seqs(found) == []
    assert found.notes


def test_the_memory_of_git_is_limited() -> None:
    shell = GitProgram("/bin/sh", ())
    limit = shell.run(["-c", "read go; ulimit -d"], environment={}, stdin=b"\n").out.strip()
    assert limit.isdigit()
    assert int(limit) * 1024 >= 2 << 30
