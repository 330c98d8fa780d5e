"""Queries from the history of public repositories: commit messages, and the files they changed as answers."""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agent_workbench.adapters.retrieval.commit_index import without_trailers
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind, kind_of
from agent_workbench.adapters.retrieval.index.source_languages import find_language, language_of

REPOS = Path(__file__).with_name("retrieval_repos.json")
_MARKED_UP = frozenset({"html", "css"})
_UNPARSED_CODE = frozenset({".svelte", ".vue", ".vim"})
_MOST_FILES, _MOST_SOURCES = 12, 3
_FEWEST_WORDS = 5
_MOST_CHARS = 1_500
_SHORTEST_NAME = 3
# Commits that tools or customs wrote.
_NOBODY_ASKS = re.compile(
    r"merge|revert|bump|release|version|update (deps|dependenc)|\[?pre-commit|chore\(deps", re.IGNORECASE
)


class Repo(Struct, frozen=True):
    """Public repository at commit `base`; queries are the commits from there to `until`."""

    name: str
    clone: str
    base: str
    until: str
    held_out: bool


class Question(Struct, frozen=True):
    """Commit message, the `sources` that the commit changed, and all files that it `changed`."""

    text: str
    sources: frozenset[str]
    changed: frozenset[str]


def read_repos() -> list[Repo]:
    """Return the repositories for fitting and those held out."""
    read = json.loads(REPOS.read_text("utf-8"))
    return [
        Repo(name, each["clone"], each["base"], each["until"], part == "held_out")
        for part, repos in read.items()
        for name, each in repos.items()
    ]


def is_source(path: str) -> bool:
    """Return True for source code that is neither test nor documentation."""
    language = language_of(path)
    code = language not in _MARKED_UP and find_language(language) is not None
    code = code or PurePosixPath(path).suffix in _UNPARSED_CODE
    return code and kind_of(path, b"") == FileKind.SOURCE


def check_out(repo: Repo, work: Path) -> Path:
    """Return a checkout of the repo at its base below `work`; clone it from GitHub if necessary."""
    clone, tree = work / "clones" / f"{repo.clone}.git", work / "trees" / repo.name
    if not clone.exists():
        begun = _anew(clone)
        _git("clone", "--quiet", "--bare", f"https://github.com/{repo.clone}", str(begun))
        begun.rename(clone)
    if not tree.exists():
        begun = _anew(tree)
        _git("clone", "--quiet", "--shared", "--no-checkout", str(clone), str(begun))
        _git("-C", str(begun), "update-ref", "--no-deref", "HEAD", repo.base)
        _git("-C", str(begun), "read-tree", repo.base)
        # A mirror may lack its largest blobs, which no index takes in: the others are checked out.
        subprocess.run(["git", "-C", str(begun), "checkout-index", "--all", "--force", "--quiet"], check=False)
        begun.rename(tree)
    return tree


def _anew(folder: Path) -> Path:
    """Return a temporary path at which to build the folder; remove what an earlier run left there."""
    begun = folder.with_name(f"{folder.name}.begun")
    shutil.rmtree(begun, ignore_errors=True)
    return begun


def mine(repo: Repo, work: Path, most: int) -> list[Question]:
    """Return at most `most` questions, sampled with a fixed seed."""
    clone = str(work / "clones" / f"{repo.clone}.git")
    there = set(_git("--git-dir", clone, "ls-tree", "-r", "-z", "--name-only", repo.base).split("\0"))
    form = ("--no-merges", "--no-renames", "--format=%x01%B%x02", "--name-status")
    log = _git("--git-dir", clone, "log", *form, f"{repo.base}..{repo.until}")
    found = [question for record in log.split("\x01")[1:] for question in _question(record, there)]
    return random.Random(repo.name).sample(found, min(most, len(found)))


def _question(record: str, there: set[str]) -> Iterator[Question]:
    """Yield the commit's question if it changed few files that existed before and names none of them."""
    message, _, listed = record.partition("\x02")
    files = [line.split("\t") for line in listed.strip().splitlines() if line]
    sources = [file for file in files if is_source(file[-1])]
    if len(files) > _MOST_FILES or not 1 <= len(sources) <= _MOST_SOURCES:
        return
    if any(state != "M" or path not in there for state, path in sources):
        return
    text = re.sub(r"\n{3,}", "\n\n", without_trailers(message)).strip()[:_MOST_CHARS]
    if len(re.findall(r"[A-Za-z]{3,}", text)) < _FEWEST_WORDS or _NOBODY_ASKS.match(text):
        return
    if not any(_names(text.lower(), path) for _, path in sources):
        yield Question(
            text, frozenset(path for _, path in sources), frozenset(there.intersection(file[-1] for file in files))
        )


def _names(text: str, path: str) -> bool:
    name = PurePosixPath(path.lower())
    if name.name in text:
        return True
    return len(name.stem) >= _SHORTEST_NAME and bool(re.search(rf"\b{re.escape(name.stem)}\b", text))


def _git(*arguments: str) -> str:
    """Return the output of git; its errors go to the screen."""
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE).stdout.decode("utf-8", "replace")
