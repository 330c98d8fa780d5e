"""Where real changes come from: the history of a git repository, and two releases of packages."""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.faults.change import GIT_ENVIRONMENT, Change, FilePair, diff_of

PROJECT = Path(__file__).resolve().parents[2]
# Small, written in Python alone, and both releases are there to stay. Wheels, since reading one runs nothing of it.
PACKAGES = (
    *(
        ("click", "8.1.3", "8.1.7"),
        ("attrs", "22.2.0", "23.2.0"),
        ("idna", "3.4", "3.7"),
        ("packaging", "23.0", "24.0"),
    ),
    *(("iniconfig", "1.1.1", "2.0.0"), ("platformdirs", "3.0.0", "4.2.0"), ("requests", "2.28.2", "2.32.3")),
)
_MAX_TEXT = 300_000
_MAX_DIFF_LINES = 600
_MAX_FILES = 3
# A hostile or odd name is the business of other tests; here a name must survive being written in every form.
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+")


class SourceError(Exception):
    """A source of changes cannot be had; the message says which and why."""


class _Entry(NamedTuple):
    """One file of a commit: the two blobs' names, zeros where there is none."""

    path: str
    pre: str
    post: str


def changes_of_repository(repository: Path, wanted: int, seed: int) -> list[Change]:
    """Return up to `wanted` changes of the commits of a repository, chosen by the seed."""
    random = Random(f"{seed}:{repository.name}")
    try:
        commits = _git(repository, "rev-list", "--no-merges", "HEAD").decode().split()
    except (subprocess.CalledProcessError, OSError) as error:
        raise SourceError(f"{repository.name}: no git history can be read there ({error})") from error
    random.shuffle(commits)
    found: list[Change] = []
    for commit in commits:
        if len(found) == wanted:
            break
        entries = _entries(repository, commit)
        change = _pick(repository, f"{repository.name}@{commit[:10]}", entries, random)
        if change is not None:
            found.append(change)
    return found


def changes_of_packages(cache: Path, wanted: int, seed: int) -> list[Change]:
    """Return up to `wanted` changes between two releases of packages, one file each; SourceError when offline."""
    found = [change for name, old, new in PACKAGES for change in _between(cache, name, old, new)]
    Random(f"{seed}:packages").shuffle(found)
    return found[:wanted]


def _pick(repository: Path, name: str, entries: Sequence[_Entry], random: Random) -> Change | None:
    chosen = list(entries)
    random.shuffle(chosen)
    pairs: list[FilePair] = []
    for entry in chosen[: _MAX_FILES * 3]:
        pre, post = (_blob(repository, blob) for blob in (entry.pre, entry.post))
        if _fits(entry, pre, post) and len(pairs) < random.randint(1, _MAX_FILES):
            pairs.append(FilePair(entry.path, pre, post))
    return _small(Change(name, tuple(sorted(pairs, key=lambda pair: pair.path)))) if pairs else None


def _fits(entry: _Entry, pre: str | None, post: str | None) -> bool:
    missing = [text is None and blob.strip("0") != "" for text, blob in ((pre, entry.pre), (post, entry.post))]
    # Files without a line have no hunk in git's diff, and no diff without git's own lines can say them.
    return not any(missing) and pre != post and "" not in {pre, post}


def _small(change: Change) -> Change | None:
    """Return the change, or as many of its files as make a diff that is not too long; None if one alone is."""
    for count in range(len(change.files), 0, -1):
        part = Change(change.id, change.files[:count])
        if diff_of(part).count("\n") <= _MAX_DIFF_LINES:
            return part
    return None


def _entries(repository: Path, commit: str) -> list[_Entry]:
    words = ("diff-tree", "-r", "-z", "--root", "--no-commit-id", "--no-renames", "--diff-filter=AMD", commit)
    fields = _git(repository, *words).decode(errors="replace").split("\0")
    entries = []
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, pre, post, _ = about.removeprefix(":").split(" ")
        plain = {old_mode, new_mode} <= {"100644", "100755", "000000"}
        same_mode = old_mode == new_mode or "000000" in {old_mode, new_mode}
        if plain and same_mode and path and set(path) <= _NAME_CHARACTERS:
            entries.append(_Entry(path, pre, post))
    return entries


def _blob(repository: Path, blob: str) -> str | None:
    """Return a blob's text; None if there is none or it is not text of a size to measure with."""
    if not blob.strip("0"):
        return None
    try:
        return _text(_git(repository, "cat-file", "blob", blob))
    except subprocess.CalledProcessError:
        return None  # A partial clone lacks it.


def _text(data: bytes) -> str | None:
    if len(data) > _MAX_TEXT or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _git(repository: Path, *words: str) -> bytes:
    command = ["git", "-C", str(repository), "-c", "safe.directory=*", *words]
    return subprocess.run(command, env=GIT_ENVIRONMENT, capture_output=True, check=True).stdout


def _between(cache: Path, name: str, old: str, new: str) -> Iterator[Change]:
    before, after = (_release(cache, name, version) for version in (old, new))
    for path in sorted({*before, *after}):
        pre, post = before.get(path), after.get(path)
        if pre and post and pre != post:
            change = _small(Change(f"{name}-{old}-{new}:{path}", (FilePair(path, pre, post),)))
            if change is not None:
                yield change


def _release(cache: Path, name: str, version: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    with zipfile.ZipFile(_wheel(cache, name, version)) as wheel:
        for path in wheel.namelist():
            if path.endswith((".py", ".pyi", ".md", ".txt")) and set(path) <= _NAME_CHARACTERS:
                text = _text(wheel.read(path))
                # The folder of the metadata is named after the version: it is the same file nevertheless.
                texts[path.replace(f"-{version}.dist-info/", ".dist-info/")] = text or ""
    return texts


def _wheel(cache: Path, name: str, version: str) -> Path:
    kept = cache / f"{name}-{version}.whl"
    if kept.is_file():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=cache) as folder:
        words = ("download", "--quiet", "--no-deps", "--only-binary", ":all:", "--retries", "1", "--timeout", "10")
        command = [sys.executable, "-m", "pip", *words, "--dest", folder, f"{name}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        (found, *_) = [*Path(folder).glob("*.whl"), None]
        if done.returncode or found is None:
            last = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise SourceError(f"{name} {version} cannot be downloaded: {last}")
        found.replace(kept)
    return kept
