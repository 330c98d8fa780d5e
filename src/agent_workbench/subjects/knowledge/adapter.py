"""Notes that outlive a task, as files that users edit too: searched, read safely, and written whole."""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha1
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import StorageError
from agent_workbench.core.knowledge import (
    SUFFIX,
    KnowledgeHit,
    KnowledgeNote,
    check_note_name,
    knowledge_folder,
    read_head,
)
from agent_workbench.core.repo.retrieval import Signal, SignalKind
from agent_workbench.ranking.small_collections import ChangingCollection, TextHit
from agent_workbench.ranking.tokens import count_stems
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.folder_trees import NotRegularError, open_regular
from agent_workbench.system.folder_watch import FolderWatch, WatchLost
from agent_workbench.system.repo_files import change_inside, resolve_inside

MAX_BYTES = 1_000_000
MAX_NOTES = 50_000
README = "README"
"""Name of the file that describes the folder; it is no note."""
Stamp = tuple[int, int, int, int]
"""Fields of a file's status that change with its content."""

MAX_QUERY_CHARS = 20_000
NAMED_PROBLEMS = 3
TITLE_WEIGHT = 3
"""Number of times that a word of the title counts."""


Read = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]


class NoteFiles:
    """The files `*.md` directly in `folder`, which is relative to `root` and must not lead out of it. Blocks."""

    def __init__(self, root: Path, folder: str) -> None:
        self._root = root
        self.folder = folder
        self.missing = False

    def resolve(self) -> Path:
        """Return the real path of the folder; raise `StorageError` if it lies outside of the root."""
        return resolve_inside(self._root, self.folder)

    def listed(self) -> Iterator[tuple[str, Stamp]]:
        """Yield the names of the notes with their stamps, and set `missing`; raise `StorageError`."""
        folder = self.resolve()
        self.missing = False
        many = 0
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name.removesuffix(SUFFIX)
                    if name == entry.name or not _is_note(name):
                        continue
                    many += 1
                    if many > MAX_NOTES:
                        raise StorageError(
                            f"{self.folder} has more than {MAX_NOTES:,} notes", advice="move old ones elsewhere"
                        )
                    if (stamp := _stamp(partial(entry.stat, follow_symlinks=False))) is not None:
                        yield name, stamp
        except FileNotFoundError:
            self.missing = True
        except OSError as error:
            raise storage_error(f"{self.folder} cannot be read", error) from error

    def stamp(self, name: str) -> Stamp | None:
        """Return the stamp of one note, None if there is none."""
        return _stamp((self.resolve() / f"{name}{SUFFIX}").lstat) if _is_note(name) else None

    def read(self, name: str) -> KnowledgeNote | None:
        """Return a note, None if there is none; a link is never followed, whatever it leads to."""
        if not _is_base_name(name):
            return None
        path = self.resolve() / f"{name}{SUFFIX}"
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

    def write(self, note: KnowledgeNote, before: str | None) -> None:
        """Put a note's text in place of `before` (None: no such file); raise `StorageError` if that is not there."""
        path = f"{self.folder}/{note.name}{SUFFIX}"
        data = _encoded(path, note.text)
        expected = None if before is None else _encoded(path, before)

        def change(found: bytes | None) -> bytes | None:
            if found != expected:
                how = "was removed since it was read" if found is None else "was changed since it was read"
                if expected is None:
                    raise StorageError(f"{path} already exists", advice="edit that note, or give this one another name")
                raise StorageError(f"{path} {how}", advice="read it again, then edit it; nothing was written")
            if found is None:
                self._check_no_clash(note.name)
            return data

        if (self._root / path).is_symlink():
            raise StorageError(f"{path} is a link", advice="replace it with the file itself")
        change_inside(self._root, path, MAX_BYTES, change)

    def _check_no_clash(self, name: str) -> None:
        """Raise `StorageError` if a note's name differs from this one by case only: some disks tell them not apart."""
        clash = next((other for other, _ in self.listed() if other.casefold() == name.casefold()), "")
        if clash:
            raise StorageError(f"{self.folder} has a note {clash}{SUFFIX} already", advice="choose another name")


def _stamp(look: Callable[[], os.stat_result]) -> Stamp | None:
    """Return the stamp of a file; None for a folder, and for a file that is gone."""
    try:
        status = look()
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_note(name: str) -> bool:
    return name != README and not name.startswith(".") and _is_base_name(name)


def _is_base_name(name: str) -> bool:
    """Return True for a name without folders that can be shown and opened."""
    return bool(name) and "/" not in name and name not in {".", ".."} and name.isprintable()


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


class NoteVectors(Protocol):
    """Similarity of the notes to words by their vectors."""

    def update(self, blobs: Mapping[str, str], read: Read) -> None:
        """Embed in the background the notes (blob id by name) that have no vector; `read` returns their bytes."""

    async def nearest(self, words: str, limit: int) -> Mapping[str, float]:
        """Return the names of at most `limit` notes that are similar to the words, with their similarity."""

    async def close(self) -> None:
        """End what runs in the background."""


class IndexedNote(Struct, frozen=True):
    """Stamp of a note's file and git's blob id of its text; `problem` says why it is not searched, empty if it is."""

    stamp: Stamp
    blob: str = ""
    problem: str = ""


class KnowledgeFolder:
    """The notes in the folder `knowledge` of the repo's memory folder (`memory`, relative to `root`)."""

    def __init__(self, root: Path, memory: str = "memory", vectors: NoteVectors | None = None) -> None:
        self._files = NoteFiles(root, knowledge_folder(memory))
        self._vectors = vectors
        self._collection = ChangingCollection()
        self._known: dict[str, IndexedNote] = {}
        self._watch: FolderWatch | None = None
        self._one_at_a_time = asyncio.Lock()

    async def notes(self) -> tuple[KnowledgeNote, ...]:
        return await asyncio.to_thread(self._notes)

    async def has_notes(self) -> bool:
        return await asyncio.to_thread(lambda: any(True for _ in self._files.listed()))

    async def read(self, name: str) -> KnowledgeNote | None:
        return await asyncio.to_thread(self._files.read, name)

    async def search(self, words: str, limit: int) -> tuple[KnowledgeHit, ...]:
        async with self._one_at_a_time:
            found = await asyncio.to_thread(self._find, words[:MAX_QUERY_CHARS])
            similar: Mapping[str, float] = {}
            if self._vectors is not None:
                blobs = {name: note.blob for name, note in self._known.items() if note.blob}
                self._vectors.update(blobs, self._read_all)
                similar = await self._vectors.nearest(words[:MAX_QUERY_CHARS], limit)
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
        await asyncio.to_thread(self._files.write, note, before)

    async def close(self) -> None:
        self._end_watch()
        if self._vectors is not None:
            await self._vectors.close()

    def _notes(self) -> tuple[KnowledgeNote, ...]:
        names = sorted(name for name, _ in self._files.listed())
        return tuple(note for name in names if (note := self._files.read(name)) is not None)

    async def _read_all(self, names: Sequence[str]) -> Mapping[str, bytes]:
        return await asyncio.to_thread(self._texts, names)

    def _texts(self, names: Sequence[str]) -> Mapping[str, bytes]:
        notes = (self._files.read(name) for name in names)
        return {note.name: note.text.encode() for note in notes if note is not None and not note.problem}

    def _find(self, words: str) -> list[TextHit]:
        self._refresh()
        return self._collection.search(words)

    def _refresh(self) -> None:
        """Read the notes that changed since the last search; where the kernel reports changes, none is looked for."""
        changes = self._changes()
        if changes is not None and not changes:
            return
        try:
            listed = dict(self._files.listed()) if changes is None else self._stamps(changes)
        except StorageError:
            self._end_watch()
            raise
        removed = frozenset(self._known.keys() - listed.keys())
        changed: dict[str, Mapping[str, int]] = {}
        for name, stamp in listed.items():
            if name in self._known and self._known[name].stamp == stamp:
                continue
            note = self._files.read(name) or KnowledgeNote(name, problem="is gone")
            if note.problem:
                removed |= {name}
                self._known[name] = IndexedNote(stamp, problem=note.problem)
                continue
            self._known[name] = IndexedNote(stamp, _blob_id(note.text.encode()))
            changed[name] = _stems(note)
        for name in removed - listed.keys():
            del self._known[name]
        self._collection.update(changed, removed)

    def _stamps(self, changes: set[str]) -> dict[str, Stamp]:
        """Return the stamps of all notes, where only these files changed."""
        stamps = {name: note.stamp for name, note in self._known.items()}
        for name in (file.removesuffix(SUFFIX) for file in changes if file.endswith(SUFFIX)):
            stamp = self._files.stamp(name)
            stamps.pop(name, None)
            stamps |= {name: stamp} if stamp is not None else {}
        return stamps

    def _changes(self) -> set[str] | None:
        """Return the files that changed since the last call, None if any may have."""
        try:
            if self._watch is not None:
                return self._watch.changes()
            self._watch = FolderWatch(str(self._files.resolve()))
            self._watch.add([""])
        except WatchLost:
            self._end_watch()
        return None

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _problem(self) -> str:
        folder = self._files.folder
        if self._files.missing:
            return f"there is no folder {folder}, so no notes are searched"
        if not self._known:
            return f"{folder} has no notes"
        told = [f"{name}{SUFFIX} {note.problem}" for name, note in sorted(self._known.items()) if note.problem]
        more = len(told) - NAMED_PROBLEMS
        rest = f" and {more} more" if more > 0 else ""
        return f"in {folder} {'; '.join(told[:NAMED_PROBLEMS])}{rest}; not searched" if told else ""

    def _hits(self, found: list[TextHit], similar: Mapping[str, float], limit: int) -> tuple[KnowledgeHit, ...]:
        """Return the best notes that can still be read."""
        hits: list[KnowledgeHit] = []
        by_name = {hit.name: hit for hit in found}
        for score, name, share in _scored(by_name, similar):
            if len(hits) >= limit or score <= 0:
                break
            note = self._files.read(name)
            if note is not None and not note.problem:
                hits.append(KnowledgeHit(note, score, _signals(by_name.get(name), share)))
        return tuple(hits)


def _scored(by_name: Mapping[str, TextHit], similar: Mapping[str, float]) -> list[tuple[float, str, float]]:
    """Return score and name of each note, best first, and the share of its words in the score.

    Where there are vectors, words and similarity count half each.
    """
    if not similar:
        return [(hit.score, hit.name, 1.0) for hit in by_name.values()]
    best = max((hit.score for hit in by_name.values()), default=1.0)
    nearest = max(similar.values())
    scored = []
    for name in {*by_name, *similar}:
        of_words = by_name[name].score / best / 2 if name in by_name else 0.0
        total = of_words + similar.get(name, 0.0) / nearest / 2
        scored.append((total, name, of_words / total if total else 0.0))
    return sorted(scored, key=lambda each: (-each[0], each[1]))


def _signals(hit: TextHit | None, share: float) -> tuple[Signal, ...]:
    of_words = (Signal(SignalKind.WORDS, round(share, 3), hit.words),) if hit is not None else ()
    of_vector = (Signal(SignalKind.VECTOR, round(1 - share, 3)),) if share < 1 else ()
    return tuple(sorted((*of_words, *of_vector), key=lambda signal: -signal.share))


def _blob_id(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _stems(note: KnowledgeNote) -> Mapping[str, int]:
    """Return the stems of a note with their counts; those of its name and title count more."""
    counts = count_stems(note.text)
    for stem, times in count_stems(f"{note.name} {read_head(note.text).title}").items():
        counts[stem] = counts.get(stem, 0) + TITLE_WEIGHT * times
    return counts
