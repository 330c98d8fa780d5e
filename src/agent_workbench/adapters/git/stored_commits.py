"""Reader of commits as git stores them: their messages, changed paths and journal hashes; and those with signed heads.

The repository is not trusted. Objects are read without replacements, grafts and commit graph, and the content of each
must have the hash that is its id. An object that git cannot read costs its own history, not that of the other refs.
"""

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise

import msgspec

from agent_workbench.adapters.git.objects import WORKBENCH, GitObjects
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.core.errors import JournalError, WorkspaceError
from agent_workbench.core.history.commit_proof import CommitFacts
from agent_workbench.core.history.journal_proof import Anchor, FoundAnchors, read_trailers
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.repo.retrieval import PastCommit

# A larger commit is not read.
MAX_COMMIT_BYTES = 64_000_000
MAX_COMMITS = 50_000
# Walks over parts of the history after a walk over all of it failed.
_MAX_WALKS = 64
_MAX_NOTES = 20
_MAX_TIPS_READ = 1_000
_BATCH_BYTES = 64_000_000
# Parents as the commits name them, and messages as they are stored, whatever the repository configures.
_WALK = ("-c", "core.commitGraph=false", "rev-list", "--ignore-missing", "--fixed-strings", "--encoding=UTF-8")
# A file `shallow` in the git directory would hide history that is there.
_WHOLE_HISTORY = {"GIT_SHALLOW_FILE": ""}

# Independent of the configuration of repository and user. A root commit, and the last commit of a shallow clone,
# changes every file and tells nothing about any.
_PLAIN = ("-c", "log.showRoot=false", "log", "-z", "--no-color", "--no-show-signature", "--encoding=UTF-8")
_PATHS = ("--name-only", "--no-merges", "--no-renames", "--no-ext-diff", "--no-textconv")


# The whole output of git is held in memory, so it is read in portions and up to a limit.
_ASKED_AT_ONCE = 1_000
_MOST_BYTES = 64_000_000

AUDIT = "refs/agent/audit/"
TRAILER = "Agent-Signed-Head"
MAX_HEADS = 20_000
_LINE = re.compile(rb"^" + TRAILER.encode() + rb": (\{[^\r\n]{1,20000}\})$", re.MULTILINE)
_HASH = re.compile(r"[0-9a-f]{64}")


class StoredCommits:
    """Stored commits of one repository; `tools` returns its git and the hash function of its object ids."""

    def __init__(self, tools: Callable[[], tuple[Plumbing, str]]) -> None:
        self._tools = tools

    async def anchors(self, sessions: Collection[str]) -> FoundAnchors:
        """Return the anchors of these sessions in all commits that refs and reflogs reach."""
        return await asyncio.to_thread(lambda: find_anchors(*self._tools(), sessions))

    async def tips(self, refs: Collection[str]) -> Mapping[str, CommitId | None]:
        """Return the commit of each ref, None for a missing ref."""
        return await asyncio.to_thread(lambda: checkpoint_tips(self._tools()[0], refs))

    async def commit(self, revision: str) -> CommitFacts | None:
        """Return a commit, None for an unknown revision."""
        return await asyncio.to_thread(lambda: read_commit(*self._tools(), revision))

    async def holder(self, commit: str) -> str:
        """Return the checked-out branch (`HEAD` if detached) if it contains a commit, else an empty text."""
        return await asyncio.to_thread(lambda: _holder(self._tools()[0], commit))


def find_anchors(plumbing: Plumbing, algorithm: str, sessions: Collection[str]) -> FoundAnchors:
    """Return the anchors of these sessions. Blocks."""
    wanted = sorted(sessions)
    if not wanted:
        return FoundAnchors()
    refs = _refs(plumbing)
    named = {oid: ref for ref, oid in refs if ref.startswith("refs/agent/") and ref.rpartition("/")[2].isdigit()}
    commits, notes = _HistoryWalk(plumbing, wanted).search(list(dict.fromkeys(oid for _, oid in refs)))
    if len(commits) >= MAX_COMMITS:
        notes.append(f"only the newest {MAX_COMMITS:,} commits that name it were read")
    anchors: list[Anchor] = []
    malformed: list[str] = []
    for facts in read_commits(plumbing, algorithm, commits):
        if not facts.intact:
            notes.append(f"commit {facts.commit[:10]} is too large, unreadable, or does not match its id")
            continue
        found = read_trailers(facts.commit, facts.message, named.get(facts.commit, ""))
        anchors += (each for each in found.anchors if each.session in sessions)
        about = (value for value in found.malformed if any(value.startswith(f"{each}:") for each in wanted))
        malformed += (f"commit {facts.commit[:10]} has the trailer {value!r}, which names no event" for value in about)
    return FoundAnchors(tuple(anchors), tuple(malformed), tuple(dict.fromkeys(notes))[:_MAX_NOTES])


class _HistoryWalk:
    """Search of the history for commits whose message contains one of the texts `wanted`."""

    def __init__(self, plumbing: Plumbing, wanted: Sequence[str]) -> None:
        self._plumbing = plumbing
        self._grep = [f"--grep={each}" for each in wanted]
        self._found: dict[str, None] = {}
        self._notes: list[str] = []
        self._walks_left = _MAX_WALKS

    def search(self, tips: list[str]) -> tuple[list[str], list[str]]:
        """Return the commits reachable from `tips` and from the reflogs, and notes about unreadable history."""
        readable, missing = [], dict.fromkeys(tips)
        for name, kind, size in _sizes(self._plumbing, tips):
            missing.pop(name, None)
            if kind == "commit" and size > MAX_COMMIT_BYTES:
                self._found[name] = None  # reported as too large; a walk from it would take long
            elif kind in {"commit", "tag"}:
                readable.append(name)
        self._notes += (f"object {name[:10]}, to which a ref points, is missing or unreadable" for name in missing)
        if error := self._run(readable, reflogs=True):
            self._notes.append(f"git cannot read all of the history: {shown(error, 300)}")
            self._run(readable, reflogs=True, environment={})  # as far as a shallow clone goes
            self._split(readable, reflogs=True)
        # git passes over a tip that it cannot parse without a word.
        self._found.update(dict.fromkeys(readable[:_MAX_TIPS_READ]))
        return list(self._found), self._notes

    def _run(self, tips: Sequence[str], *, reflogs: bool, environment: Mapping[str, str] = _WHOLE_HISTORY) -> str:
        """Walk from these tips, and from the reflogs if told to; return git's error message, empty on success."""
        self._walks_left -= 1
        given = "".join(f"{oid}\n" for oid in tips).encode()
        flags = ("--stdin", f"--max-count={MAX_COMMITS}", *(["--reflog"] if reflogs else []))
        result = self._plumbing.attempt(*_WALK, *flags, *self._grep, stdin=given, environment=environment)
        self._found.update(dict.fromkeys(result.out.decode("ascii", "replace").split()))
        return (result.err.strip() or f"status {result.status}") if result.status else ""

    def _walk(self, tips: list[str], *, reflogs: bool) -> None:
        if self._run(tips, reflogs=reflogs):
            self._split(tips, reflogs=reflogs)

    def _split(self, tips: list[str], *, reflogs: bool) -> None:
        """Walk from halves of the tips after a walk from all of them failed: the bad one then spoils only its own."""
        if self._walks_left <= 0 or len(tips) + reflogs < 2:
            self._found.update(dict.fromkeys(tips))  # a tip may be readable even if its history is not
        elif reflogs:
            self._walk(tips, reflogs=False)
            self._walk([], reflogs=True)
        else:
            half = len(tips) // 2
            self._walk(tips[:half], reflogs=False)
            self._walk(tips[half:], reflogs=False)


def read_commit(plumbing: Plumbing, algorithm: str, revision: str) -> CommitFacts | None:
    """Return the commit of a revision, None if there is none. Blocks."""
    name = plumbing.resolve(f"{revision}^{{commit}}")[0]
    return next(read_commits(plumbing, algorithm, [name]), None) if name is not None else None


def _refs(plumbing: Plumbing) -> list[tuple[str, str]]:
    """Return every ref, and `HEAD`, with the id of its object."""
    out = plumbing.run("for-each-ref", "--format=%(refname) %(objectname)").decode("utf-8", "replace")
    pairs = [line.rpartition(" ") for line in out.splitlines()]
    head = plumbing.resolve("HEAD^{commit}")[0]
    found = [(ref, oid) for ref, _, oid in pairs]
    return [("HEAD", head), *found] if head is not None else found


def read_commits(plumbing: Plumbing, algorithm: str, oids: Sequence[str]) -> Iterator[CommitFacts]:
    """Yield those of the objects that are commits; one that is too large or unreadable is not `intact`."""
    batch: list[str] = []
    batch_bytes = 0
    for name, kind, size in _sizes(plumbing, oids):
        if kind != "commit":
            continue
        if size > MAX_COMMIT_BYTES:
            yield _unreadable(name)
            continue
        if batch and batch_bytes + size > _BATCH_BYTES:
            yield from _read_batch(plumbing, algorithm, batch)
            batch, batch_bytes = [], 0
        batch.append(name)
        batch_bytes += size
    yield from _read_batch(plumbing, algorithm, batch)


def _sizes(plumbing: Plumbing, oids: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Yield id, type and size in bytes of the objects that exist."""
    asked = "".join(f"{oid}\n" for oid in oids).encode()
    listed = plumbing.run("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=asked)
    for words in (line.decode("ascii", "replace").split(" ") for line in listed.splitlines()):
        if len(words) == 3 and words[2].isdigit():
            yield words[0], words[1], int(words[2])


def _read_batch(plumbing: Plumbing, algorithm: str, names: Sequence[str]) -> Iterator[CommitFacts]:
    """Yield the commits of these ids. At an unreadable object git ends; the rest is then read by another process."""
    unread = iter(names)
    failures = 0
    while rest := list(unread):
        result = plumbing.attempt("cat-file", "--batch", stdin="".join(f"{name}\n" for name in rest).encode())
        read = list(_parse_batch(result.out, algorithm, rest))
        yield from (facts for facts in read if facts is not None)
        if not result.status:
            return
        failures += 1
        if failures > _MAX_WALKS:
            raise WorkspaceError(f"git cannot read many commits, {rest[len(read)]} among them", advice="run `git fsck`")
        yield _unreadable(rest[len(read)])
        unread = islice(rest, len(read) + 1, None)


def _parse_batch(out: bytes, algorithm: str, names: Sequence[str]) -> Iterator[CommitFacts | None]:
    """Yield each complete commit in the output of `cat-file --batch`, None for an object that is gone by now."""
    at = 0
    for name in names:
        end = out.find(b"\n", at)
        if end < 0:
            return
        head = out[at:end].split(b" ")
        if len(head) != 3:
            yield None
            at = end + 1
            continue
        data = out[end + 1 : end + 1 + int(head[2])]
        at = end + 2 + int(head[2])
        if len(out) < at:
            return
        digest = hashlib.new(algorithm, b"commit %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        yield _facts(CommitId(name), data, intact=digest == name)


def _unreadable(name: str) -> CommitFacts:
    return CommitFacts(CommitId(name), "", (), b"", intact=False)


def _facts(commit: CommitId, data: bytes, *, intact: bool) -> CommitFacts:
    head, _, message = data.partition(b"\n\n")
    fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    trees = [value.decode("ascii", "replace") for key, value in fields if key == b"tree"]
    parents = tuple(CommitId(value.decode("ascii", "replace")) for key, value in fields if key == b"parent")
    author = next((value.decode("utf-8", "replace") for key, value in fields if key == b"author"), "")
    return CommitFacts(commit, trees[0] if trees else "", parents, message, author.rpartition(">")[0] + ">", intact)


def checkpoint_tips(plumbing: Plumbing, refs: Collection[str]) -> Mapping[str, CommitId | None]:
    """Return the commit of each ref, None for a missing ref. Blocks."""
    known = {ref: CommitId(oid) for ref, oid in _refs(plumbing)}
    return {ref: known.get(ref) for ref in refs}


def _holder(plumbing: Plumbing, commit: str) -> str:
    name = plumbing.resolve(f"{commit}^{{commit}}")[0]
    if name is None or plumbing.attempt("merge-base", "--is-ancestor", name, "HEAD").status:
        return ""
    branch = plumbing.attempt("symbolic-ref", "--quiet", "--short", "HEAD").out
    return branch.decode("utf-8", "replace").strip() or "HEAD"


def past_commits(plumbing: Plumbing, head: CommitId | None, limit: int, until: str) -> tuple[PastCommit, ...]:
    """Return at most `limit` commits reachable from `head` and not from `until` (if any), newest first, no merges.

    Without a `head` from HEAD. Empty if `until` is unknown, as after a rewritten history, or if git fails. Beyond 64 MB
    of messages and paths the oldest commits are left out.
    """
    # Resolved once: the user may commit between two portions.
    tip = head or plumbing.resolve("HEAD^{commit}")[0]
    if tip is None:
        return ()
    wanted = (tip, *((f"^{until}",) if until else ()))
    found: list[PastCommit] = []
    size = 0
    while len(found) < limit and size < _MOST_BYTES:
        asked = min(_ASKED_AT_ONCE, limit - len(found))
        # A random separator, which no message and no path can contain.
        mark = secrets.token_hex(8)
        form = f"--format={mark}%H{mark}%B{mark}"
        result = plumbing.attempt(*_PLAIN, *_PATHS, form, f"--max-count={asked}", f"--skip={len(found)}", *wanted, "--")
        if result.status:
            return ()
        parts = result.out.split(mark.encode())[1:]
        found += map(_commit, parts[::3], parts[1::3], parts[2::3])
        size += len(result.out)
        if len(parts) < 3 * asked:
            break
    return tuple(found)


def _commit(name: bytes, message: bytes, paths: bytes) -> PastCommit:
    """Return the commit; git puts a NUL and a line's end before the paths, and a NUL behind each."""
    touched = paths.removeprefix(b"\0").removeprefix(b"\n").split(b"\0")
    return PastCommit(
        CommitId(name.decode()),
        message.decode("utf-8", "replace").strip(),
        tuple(os.fsdecode(path) for path in touched if path),
    )


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
