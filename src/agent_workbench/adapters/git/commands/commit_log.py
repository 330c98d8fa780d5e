"""Commit log: messages of past commits and the paths they changed."""

import os
import secrets

from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.retrieval import PastCommit

# Independent of the configuration of repository and user. A root commit, and the last commit of a shallow clone,
# changes every file and tells nothing about any.
_PLAIN = ("-c", "log.showRoot=false", "log", "-z", "--no-color", "--no-show-signature", "--encoding=UTF-8")
_PATHS = ("--name-only", "--no-merges", "--no-renames", "--no-ext-diff", "--no-textconv")


# The whole output of git is held in memory, so it is read in portions and up to a limit.
_ASKED_AT_ONCE = 1_000
_MOST_BYTES = 64_000_000


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
