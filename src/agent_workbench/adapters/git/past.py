"""The commits before now: what they said and which files they touched."""

from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.core.ids import CommitId
from agent_workbench.core.retrieval import PastCommit

# Bytes that git never puts into a path it is asked to end with NUL, and that messages do not hold.
_RECORD, _PART = "\x01", "\x02"


def past_commits(plumbing: Plumbing, head: str, limit: int, until: str) -> tuple[PastCommit, ...]:
    """Return at most `limit` commits reachable from `head` and not from `until` (if any), newest first, no merges.

    Empty where `until` is unknown, as after the history was rewritten, or git fails.
    """
    wanted = (head, f"^{until}") if until else (head,)
    form = f"--format={_RECORD}%H{_PART}%B{_PART}"
    outcome = plumbing.attempt(
        *("log", "-z", "--no-merges", "--no-renames", "--name-only", form, f"--max-count={limit}", *wanted, "--")
    )
    if outcome.status:
        return ()
    records = outcome.out.decode("utf-8", "replace").split(_RECORD)[1:]
    return tuple(_commit(record) for record in records)


def _commit(record: str) -> PastCommit:
    name, message, paths = [*record.split(_PART, 2), "", ""][:3]
    return PastCommit(
        CommitId(name), message.strip(), tuple(path.strip("\n") for path in paths.split("\0") if path.strip("\n"))
    )
