"""Search for a playbook: by its exact name, by all words, then by meaning where vectors are configured."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha1
from typing import Protocol

from agent_workbench.core.playbooks import (
    MAX_BYTES,
    Playbook,
    PlaybookSearch,
    may_be_playbook,
    read_playbook,
    slug,
)
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.ranking.small_collections import SmallCollection
from agent_workbench.ranking.tokens import count_stems

THRESHOLD = 0.85
"""Least cosine of words and a playbook that mean the same."""
NEAREST = 3
MOST_PLAYBOOKS = 1_000
MAX_WORDS = 500
_FILLER = frozenset({"a", "an", "and", "for", "in", "it", "of", "on", "our", "please", "run", "the", "to", "with"})


class TextVectors(Protocol):
    """Vectors of the playbooks' short texts."""

    def update(self, blobs: Mapping[str, str], read: Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]) -> None:
        """Embed in the background the texts (git blob id by name) that have no vector."""

    async def cosines(self, words: str) -> Mapping[str, float]:
        """Return the cosine of the words and each text that has a vector."""

    async def close(self) -> None:
        """End what runs in the background."""


async def list_playbooks(files: Sources) -> tuple[Playbook, ...]:
    """Return the playbooks among the files, by path."""
    paths = [path for path in await files.list_files() if may_be_playbook(path)][:MOST_PLAYBOOKS]
    contents = await files.read_files(paths)
    return await asyncio.to_thread(_read, {path: contents[path] for path in paths if path in contents})


def _read(contents: Mapping[str, bytes]) -> tuple[Playbook, ...]:
    texts = ((path, data.decode("utf-8", "replace")) for path, data in contents.items() if len(data) <= MAX_BYTES)
    found = (read_playbook(path, text) for path, text in texts)
    return tuple(sorted(filter(None, found), key=lambda each: each.path))


async def search_playbooks(playbooks: Sequence[Playbook], words: str, vectors: TextVectors | None) -> PlaybookSearch:
    """Return the one playbook that fits the words, else the nearest ones."""
    words = " ".join(words.split())[:MAX_WORDS]
    if (exact := _exact(playbooks, words)) is not None:
        return exact
    said, order = await asyncio.to_thread(_by_words, playbooks, words)
    if said is not None:
        return PlaybookSearch(said, "its words")
    cosines = await _cosines(playbooks, words, vectors)
    order.sort(key=lambda each: -cosines.get(each.path, 0.0))
    best = next(iter(order), None)
    if best is not None and (alike := cosines.get(best.path, 0.0)) >= THRESHOLD:
        return PlaybookSearch(best, f"its meaning ({alike:.2f}, at least {THRESHOLD})")
    return PlaybookSearch(nearest=tuple((each, cosines.get(each.path)) for each in order[:NEAREST]))


def _exact(playbooks: Sequence[Playbook], words: str) -> PlaybookSearch | None:
    """Return the playbook with this path, name or service; several of them are the nearest ones, and none is found."""
    plain = slug(words)
    ways = (
        ("its path", lambda each: each.path == words),
        ("its name", lambda each: bool(plain) and plain in {slug(each.name), slug(_file_name(each))}),
        ("its service", lambda each: bool(plain) and plain in map(slug, each.services)),
    )
    for reason, fits in ways:
        found = [each for each in playbooks if fits(each)]
        if len(found) == 1:
            return PlaybookSearch(found[0], reason)
        if found:
            return PlaybookSearch(nearest=tuple((each, None) for each in found[:NEAREST]))
    return None


def _file_name(playbook: Playbook) -> str:
    return playbook.path.rpartition("/")[2]


def _by_words(playbooks: Sequence[Playbook], words: str) -> tuple[Playbook | None, list[Playbook]]:
    """Return the playbook that alone holds all words, if there is one, and all playbooks, nearest first."""
    wanted = frozenset(count_stems(" ".join(word for word in words.lower().split() if word not in _FILLER)))
    ranked = SmallCollection([each.text for each in playbooks]).best(words, len(playbooks)) if playbooks else []
    scores = {hit.number: hit.score for hit in ranked}
    holding = [each for each in playbooks if wanted and wanted <= frozenset(count_stems(each.text))]
    order = sorted(range(len(playbooks)), key=lambda at: (-scores.get(at, 0.0), -_likeness(playbooks[at], words)))
    return holding[0] if len(holding) == 1 else None, [playbooks[at] for at in order]


def _likeness(playbook: Playbook, words: str) -> float:
    return SequenceMatcher(None, slug(playbook.name), slug(words)).ratio()


async def _cosines(playbooks: Sequence[Playbook], words: str, vectors: TextVectors | None) -> Mapping[str, float]:
    if vectors is None or not playbooks:
        return {}
    texts = {each.path: _meaning(each).encode() for each in playbooks}

    async def read(paths: Sequence[str]) -> Mapping[str, bytes]:
        return {path: texts[path] for path in paths if path in texts}

    vectors.update({path: blob_id(text) for path, text in texts.items()}, read)
    return await vectors.cosines(words)


def blob_id(data: bytes) -> str:
    """Return the id that git gives such a content, by which vectors are stored."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _meaning(playbook: Playbook) -> str:
    """Return the few words that say what a playbook does."""
    name = playbook.name.replace("-", " ").replace("_", " ")
    return "\n".join((name, *playbook.services, *playbook.plays[:5]))
