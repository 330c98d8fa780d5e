"""Anchors of journals in all that a repository's refs and reflogs reach, and single commits as they are stored.

The repository is not trusted: objects are read as they are, and each has to have the hash that is its name.
"""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.core.history.anchors import Anchor, FoundAnchors, read_trailers
from agent_workbench.core.history.commit_proof import CommitFacts
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown

# Of a commit that is larger no more is read than that it is there.
MOST_COMMIT_BYTES = 64_000_000
MOST_COMMITS = 50_000
_BATCH_BYTES = 64_000_000
# Parents as the commits name them, not as a file beside them does; texts as they are, not as the repo wants them shown.
_WALK = (
    *("-c", "core.commitGraph=false", "rev-list", "--stdin", "--reflog", "--ignore-missing"),
    *("--fixed-strings", "--encoding=UTF-8"),
)


class StoredCommits:
    """The commits of one repository as they are stored; `tools` gives its git and how it names objects."""

    def __init__(self, tools: Callable[[], tuple[Plumbing, str]]) -> None:
        self._tools = tools

    async def anchors(self, sessions: Collection[str]) -> FoundAnchors:
        """Return what refs and reflogs reach that names an event of these sessions."""
        return await asyncio.to_thread(lambda: find_anchors(*self._tools(), sessions))

    async def tips(self, refs: Collection[str]) -> Mapping[str, CommitId | None]:
        """Return the commit at each of these refs, None where there is no such ref."""
        return await asyncio.to_thread(lambda: checkpoint_tips(self._tools()[0], refs))

    async def commit(self, revision: str) -> CommitFacts | None:
        """Return a commit, None where the revision names none."""
        return await asyncio.to_thread(lambda: read_commit(*self._tools(), revision))

    async def holder(self, commit: str) -> str:
        """Return the checked-out branch (`HEAD` where there is none) if it contains a commit, else nothing."""
        return await asyncio.to_thread(lambda: _holder(self._tools()[0], commit))


def find_anchors(plumbing: Plumbing, algorithm: str, sessions: Collection[str]) -> FoundAnchors:
    """Return the anchors that name one of the sessions. Blocks."""
    wanted = sorted(sessions)
    if not wanted:
        return FoundAnchors()
    refs = _refs(plumbing)
    named = {oid: ref for ref, oid in refs if ref.startswith("refs/agent/") and ref.rpartition("/")[2].isdigit()}
    grep = (f"--grep={each}" for each in wanted)
    tips = "".join(f"{oid}\n" for oid in dict.fromkeys(oid for _, oid in refs)).encode()
    result = plumbing.attempt(*_WALK, f"--max-count={MOST_COMMITS}", *grep, stdin=tips)
    commits = result.out.decode("ascii", "replace").split()
    notes = [f"only the newest {MOST_COMMITS:,} commits that name it were read"] if len(commits) >= MOST_COMMITS else []
    if result.status:  # what was reached before that counts, and so does every tip
        notes.append(f"git cannot read all of the history: {shown(result.err.strip(), 300)}")
        commits += [oid for _, oid in refs]
    anchors: list[Anchor] = []
    malformed: list[str] = []
    for facts in _read_commits(plumbing, algorithm, list(dict.fromkeys(commits))):
        if not facts.intact:
            notes.append(f"commit {facts.commit[:10]} is too large, or not what its name says")
            continue
        found = read_trailers(facts.commit, facts.message, named.get(facts.commit, ""))
        anchors += (each for each in found.anchors if each.session in sessions)
        about = (value for value in found.malformed if any(value.startswith(f"{each}:") for each in wanted))
        malformed += (f"commit {facts.commit[:10]} has the trailer {value!r}, which names no event" for value in about)
    return FoundAnchors(tuple(anchors), tuple(malformed), tuple(notes))


def read_commit(plumbing: Plumbing, algorithm: str, revision: str) -> CommitFacts | None:
    """Return the commit that a revision stands for, None where there is none. Blocks."""
    name = plumbing.resolve(f"{revision}^{{commit}}")[0]
    return next(_read_commits(plumbing, algorithm, [name]), None) if name is not None else None


def _refs(plumbing: Plumbing) -> list[tuple[str, str]]:
    """Return every ref with its object, and `HEAD`."""
    out = plumbing.run("for-each-ref", "--format=%(refname) %(objectname)").decode("utf-8", "replace")
    pairs = [line.rpartition(" ") for line in out.splitlines()]
    head = plumbing.resolve("HEAD^{commit}")[0]
    found = [(ref, oid) for ref, _, oid in pairs]
    return [("HEAD", head), *found] if head is not None else found


def _read_commits(plumbing: Plumbing, algorithm: str, commits: Sequence[str]) -> Iterator[CommitFacts]:
    """Yield those of the objects that are commits."""
    asked = "".join(f"{oid}\n" for oid in commits).encode()
    listed = plumbing.run("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=asked)
    batch: list[str] = []
    size = 0
    for words in (line.decode("ascii", "replace").split(" ") for line in listed.splitlines()):
        if words[1:2] != ["commit"]:
            continue
        name, bytes_ = words[0], int(words[2])
        if bytes_ > MOST_COMMIT_BYTES:
            yield CommitFacts(CommitId(name), "", (), b"", intact=False)
            continue
        if batch and size + bytes_ > _BATCH_BYTES:
            yield from _read_batch(plumbing, algorithm, batch)
            batch, size = [], 0
        batch.append(name)
        size += bytes_
    yield from _read_batch(plumbing, algorithm, batch)


def _read_batch(plumbing: Plumbing, algorithm: str, names: Sequence[str]) -> Iterator[CommitFacts]:
    out = plumbing.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode()) if names else b""
    at = 0
    for name in names:
        end = out.index(b"\n", at)
        head = out[at:end].split(b" ")
        if len(head) != 3:  # it went between the two questions
            at = end + 1
            continue
        data = out[end + 1 : end + 1 + int(head[2])]
        at = end + 2 + len(data)
        digest = hashlib.new(algorithm, b"commit %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        yield _facts(CommitId(name), data, intact=digest == name)


def _facts(commit: CommitId, data: bytes, *, intact: bool) -> CommitFacts:
    head, _, message = data.partition(b"\n\n")
    fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    objects = [value.decode("ascii", "replace") for key, value in fields if key == b"tree"]
    parents = tuple(CommitId(value.decode("ascii", "replace")) for key, value in fields if key == b"parent")
    author = next((value.decode("utf-8", "replace") for key, value in fields if key == b"author"), "")
    return CommitFacts(commit, objects[0] if objects else "", parents, message, author.rpartition(">")[0] + ">", intact)


def checkpoint_tips(plumbing: Plumbing, refs: Collection[str]) -> Mapping[str, CommitId | None]:
    """Return the commit at each of these refs, None where there is no such ref. Blocks."""
    known = {ref: CommitId(oid) for ref, oid in _refs(plumbing)}
    return {ref: known.get(ref) for ref in refs}


def _holder(plumbing: Plumbing, commit: str) -> str:
    name = plumbing.resolve(f"{commit}^{{commit}}")[0]
    if name is None or plumbing.attempt("merge-base", "--is-ancestor", name, "HEAD").status:
        return ""
    branch = plumbing.attempt("symbolic-ref", "--quiet", "--short", "HEAD").out
    return branch.decode("utf-8", "replace").strip() or "HEAD"
