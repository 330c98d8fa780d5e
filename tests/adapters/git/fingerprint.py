"""What must stay as it is in a user's repository, as a value that two moments can be compared by."""

import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

# Found once: tests put other things on the PATH.
_GIT = shutil.which("git") or "git"
# Where the workbench keeps what is its own.
OURS = ("refs/heads/agent/", "refs/agent/")


def fingerprint(repo: Path, besides: Collection[str] = ()) -> dict[str, str]:
    """Return names and digests of everything in the checkout `repo` that is the user's, to be compared with `==`.

    Files with mode and content, links with target, folders; the index's bytes, HEAD and its log, refs other than the
    workbench's, stash, configuration, hooks, `info`. `besides` are paths (with all below) that are left out.
    """
    common = _git_dir(repo)
    found = {f"file {path}": what for path, what in _walk(repo, besides)}
    for name in ("HEAD", "index", "config", "config.worktree", "packed-refs", "ORIG_HEAD", "MERGE_HEAD", "logs/HEAD"):
        found[f"git {name}"] = _describe(common / name)
    if (common / "packed-refs").exists():
        found["git packed-refs"] = "in refs"
    for folder in ("hooks", "info", "logs/refs/stash"):
        found |= {f"git {folder}/{path}": what for path, what in _walk(common / folder, ())}
    found |= {f"ref {name}": oid for name, oid in _refs(repo) if not name.startswith(OURS)}
    return found


def _git_dir(repo: Path) -> Path:
    pointer = repo / ".git"
    if pointer.is_dir():
        return pointer
    if pointer.is_file():
        return Path(repo, pointer.read_text().removeprefix("gitdir: ").strip())
    return repo


def _walk(root: Path, besides: Collection[str]) -> Iterator[tuple[str, str]]:
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name != ".git"]
        for name in (*folders, *names):
            path = Path(folder, name)
            relative = path.relative_to(root).as_posix()
            if not any(relative == each or relative.startswith(f"{each}/") for each in besides):
                yield relative, _describe(path)


def _describe(path: Path) -> str:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return "absent"
    mode = oct(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return f"{mode} to {os.readlink(path)}"  # noqa: PTH115 - exactly as it is
    if stat.S_ISREG(status.st_mode):
        return f"{mode} {sha256(path.read_bytes()).hexdigest()}"
    return mode


def _refs(repo: Path) -> Iterator[tuple[str, str]]:
    # for-each-ref runs nothing that a repository configures, and writes nothing.
    out = subprocess.run(
        [_GIT, "-c", "safe.directory=*", "for-each-ref", "--format=%(refname) %(objectname)"],
        cwd=repo,
        env={"PATH": os.environ["PATH"], "GIT_OPTIONAL_LOCKS": "0", "HOME": "/nonexistent"},
        capture_output=True,
        check=False,
    ).stdout
    for line in out.decode(errors="surrogateescape").splitlines():
        name, _, oid = line.partition(" ")
        yield name, oid
