"""Search of notes: the first search, a search in an unchanged folder, and one after a note was changed."""

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

from agent_workbench.subjects.knowledge.adapter import KnowledgeFolder
from bench.figures import Figure, milliseconds

VOCABULARY, LINES, LINE_WORDS = 8_000, 12, 12


def measure(notes: int = 10_000, rounds: int = 9) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        return asyncio.run(_measure(root, notes, _write(root, notes), rounds))


def _write(root: Path, notes: int) -> list[str]:
    """Write the notes; return words of one of them."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 9))) for _ in range(VOCABULARY)]
    place = root / "memory" / "knowledge"
    place.mkdir(parents=True)
    for number in range(notes):
        lines = (" ".join(chance.choices(words, k=LINE_WORDS)) for _ in range(LINES))
        title = " ".join(chance.choices(words, k=4))
        (place / f"note-{number}.md").write_text("\n".join(("---", f"title: {title}", "---", *lines)))
    return chance.choices(words, k=30)


async def _measure(root: Path, notes: int, words: list[str], rounds: int) -> list[Figure]:
    knowledge, asked = KnowledgeFolder(root), " ".join(words)

    async def changed() -> None:
        (root / "memory" / "knowledge" / "note-7.md").write_text(f"{perf_counter()} {asked}")
        await knowledge.search(asked, 5)

    try:
        first = await _seconds(lambda: knowledge.search(asked, 5))
        same = [await _seconds(lambda: knowledge.search(asked, 5)) for _ in range(rounds)]
        other = [await _seconds(changed) for _ in range(rounds)]
    finally:
        await knowledge.close()
    return [
        milliseconds(f"first search of {notes:,} notes", [first]),
        milliseconds("search", same, "< 50"),
        milliseconds("search after a note changed", other, "< 50"),
    ]


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    begun = perf_counter()
    await work()
    return perf_counter() - begun
