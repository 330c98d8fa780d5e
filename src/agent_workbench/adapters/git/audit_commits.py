"""Commits of `refs/agent/audit/<session>`: each carries a signed head of the session's journal in its message."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from agent_workbench.adapters.git.objects import WORKBENCH, GitObjects
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.stored_commits import read_commits
from agent_workbench.core.errors import JournalError
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import CommitId, SessionId

AUDIT = "refs/agent/audit/"
TRAILER = "Agent-Signed-Head"
MAX_HEADS = 20_000
_LINE = re.compile(rb"^" + TRAILER.encode() + rb": (\{[^\r\n]{1,20000}\})$", re.MULTILINE)
_HASH = re.compile(r"[0-9a-f]{64}")


def audit_ref(session: SessionId) -> str:
    """Return the ref of a session's signed heads."""
    return f"{AUDIT}{session}"


def write_audit_commit(objects: GitObjects, head: SignedHead, parent: CommitId | None) -> CommitId:
    """Store a commit without files that carries the head, after `parent`. Blocks."""
    empty = objects.plumbing.run("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()
    value = msgspec.json.encode(head).decode()
    message = f"Event {head.seq} of session {head.session}\n\n{TRAILER}: {value}\n"
    return CommitId(objects.commit(empty, [parent] if parent is not None else [], message, WORKBENCH))


def read_audit_heads(plumbing: Plumbing, algorithm: str, session: SessionId, tip: str) -> tuple[SignedHead, ...]:
    """Return the heads of the commits from the first one to `tip`, whoever signed them. Blocks.

    Raises `JournalError` for a commit that is none of a session's heads, or heads out of order.
    """
    walk = ("rev-list", "--first-parent", f"--max-count={MAX_HEADS + 1}", tip)
    names = plumbing.run("-c", "core.commitGraph=false", *walk).decode("ascii", "replace").split()
    if len(names) > MAX_HEADS:
        raise _wrong(session, f"it has more than {MAX_HEADS:,} commits")
    heads = tuple(_heads(plumbing, algorithm, session, names[::-1]))
    for older, newer in pairwise(heads):
        if newer.fence < older.fence or newer.seq < older.seq:
            raise _wrong(
                session, f"event {newer.seq} under lease {newer.fence} follows {older.seq} under {older.fence}"
            )
        if newer.seq == older.seq and newer.hash != older.hash:
            raise _wrong(session, f"it has two hashes for event {newer.seq}")
    return heads


def _heads(plumbing: Plumbing, algorithm: str, session: SessionId, names: Sequence[str]) -> Iterator[SignedHead]:
    found = {facts.commit: facts for facts in read_commits(plumbing, algorithm, names)}
    before: tuple[str, ...] = ()
    for name in names:
        facts = found.get(CommitId(name))
        if facts is None or not facts.intact:
            raise _wrong(session, f"commit {name[:10]} cannot be read")
        if facts.parents != before:
            raise _wrong(session, f"commit {name[:10]} has other parents than the one before it")
        before = (name,)
        yield _parse(session, name, facts.message)


def _parse(session: SessionId, name: str, message: bytes) -> SignedHead:
    lines = _LINE.findall(message)
    try:
        head = msgspec.json.decode(lines[0], type=SignedHead) if len(lines) == 1 else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        head = None
    right = head is not None and head.session == session and head.seq >= -1 and head.fence >= 0
    if head is None or not right or bool(_HASH.fullmatch(head.hash)) != (head.seq >= 0):
        raise _wrong(session, f"commit {name[:10]} carries no signed head of it")
    return head


def _wrong(session: SessionId, why: str) -> JournalError:
    return JournalError(
        f"{audit_ref(session)} is not what a worker writes: {why}",
        advice="somebody changed the git remote; compare it with another clone before you go on",
    )
