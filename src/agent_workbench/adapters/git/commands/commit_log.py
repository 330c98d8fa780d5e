"""The commits before now: what they said and which files they touched."""

import os
import secrets

from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.core.ids import CommitId
from agent_workbench.core.retrieval import PastCommit

# Whatever the repo or its user configured, these are what is asked for. A first commit, as the last one of a shallow
# clone seems to be, touches every file there is and says nothing of any.
_PLAIN = ("-c", "log.showRoot=false", "log", "-z", "--no-color", "--no-show-signature", "--encoding=UTF-8")
_PATHS = ("--name-only", "--no-merges", "--no-renames", "--no-ext-diff", "--no-textconv")


# Git's answer is held in memory as a whole, so it is asked for so many commits at a time, until it said so much.
_ASKED_AT_ONCE = 1_000
_MOST_BYTES = 64_000_000


def past_commits(plumbing: Plumbing, head: str, limit: int, until: str) -> tuple[PastCommit, ...]:
    """Return at most `limit` commits reachable from `head` and not from `until` (if any), newest first, no merges.

    Empty where `until` is unknown, as after the history was rewritten, or git fails. Of commits that say and touch very
    much (64 MB) the oldest are left out.
    """
    # Between two questions the user may commit.
    tip = plumbing.attempt("rev-parse", "--verify", "--quiet", f"{head}^{{commit}}")
    if tip.status:
        return ()
    wanted = (os.fsdecode(tip.out).strip(), *((f"^{until}",) if until else ()))
    found: list[PastCommit] = []
    size = 0
    while len(found) < limit and size < _MOST_BYTES:
        asked = min(_ASKED_AT_ONCE, limit - len(found))
        # No message and no path holds what is made up only now.
        mark = secrets.token_hex(8)
        form = f"--format={mark}%H{mark}%B{mark}"
        outcome = plumbing.attempt(
            *_PLAIN, *_PATHS, form, f"--max-count={asked}", f"--skip={len(found)}", *wanted, "--"
        )
        if outcome.status:
            return ()
        parts = outcome.out.split(mark.encode())[1:]
        found += map(_commit, parts[::3], parts[1::3], parts[2::3])
        size += len(outcome.out)
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
