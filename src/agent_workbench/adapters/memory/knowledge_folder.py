"""Folder of the notes that outlive a task: one markdown file each, which users edit with any program too."""

import asyncio
import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from agent_workbench.adapters.memory.note_index import IndexedNote, NoteIndex, WordHit, note_stems
from agent_workbench.core.errors import StorageError
from agent_workbench.core.knowledge.note_names import SUFFIX, knowledge_folder
from agent_workbench.core.knowledge.note_text import read_head
from agent_workbench.core.ports.knowledge import KnowledgeHit, KnowledgeNote, check_note_name
from agent_workbench.core.repo.retrieval import Signal, SignalKind
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.folder_watch import FolderWatch, WatchLost
from agent_workbench.system.regular_files import NotRegularError, open_regular
from agent_workbench.system.repo_files import change_inside, resolve_inside

MAX_BYTES = 1_000_000
MAX_NOTES = 50_000
MAX_QUERY_CHARS = 20_000
NAMED_PROBLEMS = 3
README = "README"
"""Name of the file that describes the folder; it is no note."""
_Stamp = tuple[int, int, int, int]


class NoteVectors(Protocol):
    """Similarity of texts by their vectors, where an embeddings endpoint is set."""

    @property
    def wanted(self) -> bool:
        """True if the settings name a source of vectors."""

    def update(self, hashes: dict[str, str], folder: Path) -> None:
        """Embed in the background the notes (content hash by name) of the folder that have no vector."""

    async def nearest(self, words: str, limit: int) -> dict[str, float]:
        """Return the names of at most `limit` notes that are similar to the words, with their similarity."""

    async def close(self) -> None:
        """End what runs in the background."""


class KnowledgeFolder:
    """The notes in the folder `knowledge` of the repo's memory folder (`memory`, relative to `root`)."""

    def __init__(self, root: Path, memory: str = "memory", vectors: NoteVectors | None = None) -> None:
        self._root = root
        self._folder = knowledge_folder(memory)
        self._vectors = vectors if vectors is not None and vectors.wanted else None
        self._index = NoteIndex()
        self._problems: dict[str, tuple[_Stamp, str]] = {}
        self._missing = False
        self._watch: FolderWatch | None = None
        self._one_at_a_time = asyncio.Lock()

    async def notes(self) -> tuple[KnowledgeNote, ...]:
        return await asyncio.to_thread(self._notes)

    async def has_notes(self) -> bool:
        async with self._one_at_a_time:
            await asyncio.to_thread(self._refresh)
            return bool(self._index.notes)

    async def read(self, name: str) -> KnowledgeNote | None:
        return await asyncio.to_thread(self._read, name)

    async def search(self, words: str, limit: int) -> tuple[KnowledgeHit, ...]:
        async with self._one_at_a_time:
            found = await asyncio.to_thread(self._find, words[:MAX_QUERY_CHARS])
            similar: dict[str, float] = {}
            if self._vectors is not None:
                hashes = {name: note.sha for name, note in self._index.notes.items()}
                self._vectors.update(hashes, self._root / self._folder)
                similar = await self._vectors.nearest(words, limit)
            return await asyncio.to_thread(self._hits, found, similar, limit)

    async def problem(self) -> str:
        async with self._one_at_a_time:
            try:
                await asyncio.to_thread(self._refresh)
            except StorageError as error:
                return str(error)
            return self._problem()

    async def write(self, note: KnowledgeNote, before: str | None) -> None:
        check_note_name(note.name)
        await asyncio.to_thread(self._write, note, before)

    async def close(self) -> None:
        self._end_watch()
        if self._vectors is not None:
            await self._vectors.close()

    def _notes(self) -> tuple[KnowledgeNote, ...]:
        names = sorted(name for name, _ in self._listed())
        return tuple(note for name in names if (note := self._read(name)) is not None)

    def _read(self, name: str) -> KnowledgeNote | None:
        """Return a note, None if there is none; a link is never followed, whatever it leads to."""
        if not _is_base_name(name):
            return None
        path = resolve_inside(self._root, self._folder) / f"{name}{SUFFIX}"
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                if (size := os.fstat(file.fileno()).st_size) > MAX_BYTES:
                    return KnowledgeNote(name, problem=f"has {size:,} bytes; the limit is {MAX_BYTES:,}")
                data = file.read(MAX_BYTES)
        except FileNotFoundError:
            return None
        except NotRegularError:
            return KnowledgeNote(name, problem="is not a regular file")
        except OSError as error:
            linked = path.is_symlink()
            return KnowledgeNote(name, problem="is a link" if linked else f"cannot be read: {error.strerror}")
        if b"\0" in data:
            return KnowledgeNote(name, problem="is not text")
        try:
            return KnowledgeNote(name, data.decode("utf-8"))
        except UnicodeDecodeError:
            return KnowledgeNote(name, problem="is not UTF-8")

    def _listed(self) -> Iterator[tuple[str, _Stamp]]:
        """Yield the names of the notes with the stamps of their files; raise `StorageError`."""
        folder = resolve_inside(self._root, self._folder)
        self._missing = False
        try:
            with os.scandir(folder) as entries:
                many = 0
                for entry in entries:
                    name = entry.name.removesuffix(SUFFIX)
                    if name in {entry.name, README} or name.startswith(".") or not _is_base_name(name):
                        continue
                    many += 1
                    if many > MAX_NOTES:
                        raise StorageError(
                            f"{self._folder} has more than {MAX_NOTES:,} notes", advice="move old ones elsewhere"
                        )
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # it was removed meanwhile
                    if not stat.S_ISDIR(status.st_mode):
                        yield name, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except FileNotFoundError:
            self._missing = True
        except OSError as error:
            raise storage_error(f"{self._folder} cannot be read", error) from error

    def _refresh(self) -> None:
        """Read the notes that changed since the last search; where the kernel reports changes, none is looked for."""
        if self._is_current():
            return
        listed = dict(self._listed())
        known = self._index.notes
        removed = frozenset(known.keys() - listed.keys())
        self._problems = {name: each for name, each in self._problems.items() if listed.get(name) == each[0]}
        changed: dict[str, IndexedNote] = {}
        for name, stamp in listed.items():
            if name in self._problems or (name in known and known[name].stamp == stamp):
                continue
            note = self._read(name)
            if note is None or note.problem:
                self._problems[name] = stamp, note.problem if note is not None else "is gone"
                removed |= {name} & known.keys()
                continue
            sha = sha256(note.text.encode("utf-8")).hexdigest()
            changed[name] = IndexedNote(stamp, note_stems(f"{name} {read_head(note.text).title}", note.text), sha)
        self._index.update(changed, removed)

    def _is_current(self) -> bool:
        """Return True if the folder is watched, and nothing in it changed since the last call."""
        try:
            if self._watch is not None:
                return not self._watch.changes()
            self._watch = FolderWatch(str(resolve_inside(self._root, self._folder)))
            self._watch.add([""])
        except WatchLost:
            self._end_watch()
        return False

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _problem(self) -> str:
        if self._missing:
            return f"there is no folder {self._folder}, so no notes are searched"
        if not self._index.notes and not self._problems:
            return f"{self._folder} has no notes"
        told = [f"{name}{SUFFIX} {why}" for name, (_, why) in sorted(self._problems.items())]
        more = len(told) - NAMED_PROBLEMS
        rest = f" and {more} more" if more > 0 else ""
        return f"in {self._folder} {'; '.join(told[:NAMED_PROBLEMS])}{rest}; not searched" if told else ""

    def _find(self, words: str) -> list[WordHit]:
        self._refresh()
        return self._index.search(words)

    def _hits(self, found: list[WordHit], similar: dict[str, float], limit: int) -> tuple[KnowledgeHit, ...]:
        """Return the best notes; where there are vectors, words and similarity count half each."""
        best = max((hit.score for hit in found), default=0.0)
        nearest = max(similar.values(), default=0.0)
        by_name = {hit.name: hit for hit in found}
        scored = []
        for name in dict.fromkeys((*by_name, *similar)):
            hit = by_name.get(name)
            if not similar:
                scored.append((hit.score if hit is not None else 0.0, name, 1.0))
                continue
            of_words = hit.score / best / 2 if hit is not None and best else 0.0
            of_vector = similar.get(name, 0.0) / nearest / 2 if nearest else 0.0
            total = of_words + of_vector
            scored.append((total, name, of_words / total if total else 0.0))
        scored.sort(key=lambda each: (-each[0], each[1]))
        hits: list[KnowledgeHit] = []
        for score, name, share in scored:
            if len(hits) >= limit or score <= 0:
                break
            note = self._read(name)
            if note is not None and not note.problem:
                hits.append(KnowledgeHit(note, score, _signals(by_name.get(name), share)))
        return tuple(hits)

    def _write(self, note: KnowledgeNote, before: str | None) -> None:
        path = f"{self._folder}/{note.name}{SUFFIX}"
        data = _encoded(path, note.text)
        expected = None if before is None else _encoded(path, before)

        def change(found: bytes | None) -> bytes | None:
            if found != expected:
                raise StorageError(
                    f"{path} {_how_changed(found, expected)} since it was read", advice="look at it again"
                )
            if found is None:
                self._check_no_clash(note.name)
            return data

        if (self._root / path).is_symlink():
            raise StorageError(f"{path} is a link", advice="replace it with the file itself")
        change_inside(self._root, path, MAX_BYTES, change)

    def _check_no_clash(self, name: str) -> None:
        """Raise `StorageError` if a note's name differs from this one by case only: some disks tell them not apart."""
        clash = next((other for other, _ in self._listed() if other.casefold() == name.casefold()), "")
        if clash:
            raise StorageError(f"{self._folder} has a note {clash}{SUFFIX} already", advice="choose another name")


def _signals(hit: WordHit | None, share: float) -> tuple[Signal, ...]:
    of_words = (Signal(SignalKind.WORDS, round(share, 3), hit.words),) if hit is not None else ()
    of_vector = (Signal(SignalKind.VECTOR, round(1 - share, 3)),) if share < 1 else ()
    return tuple(sorted((*of_words, *of_vector), key=lambda signal: -signal.share))


def _is_base_name(name: str) -> bool:
    """Return True for a name without folders that can be shown and opened."""
    return bool(name) and "/" not in name and "\0" not in name and name not in {".", ".."} and name.isprintable()


def _how_changed(found: bytes | None, expected: bytes | None) -> str:
    return "was removed" if found is None else "was written" if expected is None else "was changed"


def _encoded(path: str, text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StorageError(
            f"{path} cannot contain the character {text[error.start]!a}", advice="remove that character"
        ) from error
    if len(data) > MAX_BYTES or b"\0" in data:
        what = "a NUL character" if b"\0" in data else f"{len(data):,} bytes"
        raise StorageError(f"{path} would have {what}", advice=f"a note is text of at most {MAX_BYTES:,} bytes")
    return data
