"""Index of one folder: loaded, updated with the files that likely answer a query first, and saved with their stamps."""

import asyncio
import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.change_finder import ChangedFiles, ChangeFinder, FileQueue
from agent_workbench.adapters.retrieval.index.chunk_cache import FORMAT
from agent_workbench.adapters.retrieval.index.file_parser import ParsedBatch
from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex
from agent_workbench.adapters.retrieval.index.segments import blob_id
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.adapters.retrieval.indexable_files import (
    ExcludedPaths,
    FileStamp,
    count_left_out,
    count_submodules,
    is_searchable,
    secrets_among,
)
from agent_workbench.adapters.retrieval.worker_pool import WORKERS, ParsingTools
from agent_workbench.adapters.retrieval.worker_process import all_of, in_thread
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.core.repo.retrieval import IndexStatus
from agent_workbench.core.settings import RetrievalSettings
from agent_workbench.system.atomic_files import system_message

# Changes this small are parsed here in less time than a process takes to start.
_MAX_FILES_IN_PROCESS, _MAX_BYTES_IN_PROCESS = 64, 128 * 1024
# Number of changes that are worth a new snapshot; fewer are parsed again quickly.
_WORTH_SAVING = 50
# Lists in which new folders may come up; then the watch is given up, and set up again at the next refresh.
_MAX_LISTS = 3
# So many files take seconds to index.
_MANY_FILES = 3_000

MAX_FILES = 1_000
_SHORTEST_WORD = 3
_MAX_WORDS = 40
# A word in a path says more than one in a text.
_PATH_SHARE = 2.0
_MAX_LOOKED_AT, _LOOKED_AT_ONCE = 40_000, 500

# Raise it whenever the kinds of files, or the files that are left out, change.
_KINDS = "2"

# Flag for a stamp that is equal to no later one, because the file may change at the same time stamp.
_NUMBERS = 4
_NEVER = -1


class FolderIndex:
    """The index of the files below `root`. One refresh at a time; searches use `index.view` meanwhile.

    The stamps of `finder` are those of all files that were read. Those not in the index are binary, or killed a worker.
    """

    def __init__(self, root: str, settings: RetrievalSettings, cache: CacheFolder, tools: ParsingTools) -> None:
        self.index = WorkspaceIndex()
        self.status = IndexStatus()
        self._root = root
        self._settings = settings
        self._cache = cache
        self._tools = tools
        self.finder = ChangeFinder(root, settings.exclude)
        self._loaded = False
        self._unsaved = 0
        self._changing = asyncio.Lock()
        self._queue: FileQueue | None = None
        self._has_many = asyncio.Event()

    async def refresh(self, sources: Sources, *, is_thorough: bool = False) -> bool:
        """Index the files that changed since the last call; return True if there were any.

        A watch of the folder tells which did, unless it `is_thorough`. Raises what `sources` raises.
        """
        changes = None if is_thorough else await in_thread(self.finder.watched)
        if changes is None:
            changes = await self._compared(sources)
        elif not changes.paths and changes.stamps is self.finder.stamps:
            return False
        await in_thread(partial(self._delete_gone, changes))
        self.status = replace(self.status, done=0, total=len(changes.paths), submodules=changes.submodules)
        await in_thread(partial(self._update_counts, changes))
        if changes.paths:
            await self._index_changes(sources, changes)
            await in_thread(partial(self._update_counts, changes))
            self._unsaved += len(changes.paths)
        if self._unsaved >= _WORTH_SAVING:
            await in_thread(self._save)
        self.finder.settle()
        return bool(changes.paths)

    async def first_ready(self, sources: Sources, words: Callable[[], Sequence[str]]) -> None:
        """Index the files first that contain these words, and wait for them; never return unless many files wait.

        A search need not wait for the others: nearly all that it finds is in these.
        """
        queue = await self._many_files()
        best = await find_likely(sources, queue.waiting, words())
        queue.put_first(best)
        while queue.holds(best):
            await queue.wait()

    async def _many_files(self) -> FileQueue:
        """Wait until many files wait to be indexed, and return them."""
        while True:
            await self._has_many.wait()
            if self._queue is not None:
                return self._queue

    async def _compared(self, sources: Sources) -> ChangedFiles:
        """List all files and compare the status of each."""
        paths = await sources.list_files()
        if not self._loaded:
            await in_thread(self._load)
            await in_thread(partial(self._delete_secrets, paths))
            self._loaded = True
        # A file that is written between the list and the watch would be missed.
        for _ in range(_MAX_LISTS):
            if not await in_thread(partial(self.finder.watch, paths)):
                break
            paths = await sources.list_files()
        else:
            self.finder.close()
        return await in_thread(partial(self.finder.compared, paths))

    async def _index_changes(self, sources: Sources, changes: ChangedFiles) -> None:
        """Read and index the changed files."""
        in_process = self._fits_in_process(changes)
        queue = self._queue = FileQueue(changes)
        if len(changes.paths) >= _MANY_FILES:
            self._has_many.set()
        # One more than there are workers, so that the next batch is already read when a worker is free.
        tasks = [
            self._index_batches(sources, queue, changes, in_process=in_process)
            for _ in range(1 if in_process else WORKERS + 1)
        ]
        try:
            await all_of(tasks)
            if len(changes.paths) > len(changes.stamps) // 2 and len(self.index.view.segments) > 1:
                await self._merge_from(0)
        finally:
            self._queue = None
            self._has_many.clear()
            if not in_process:
                await self._tools.workers.close()

    def _fits_in_process(self, changes: ChangedFiles) -> bool:
        """Return True if the changes are few enough for this process.

        Files that once killed a worker go to a worker again.
        """
        is_small = len(changes.paths) <= _MAX_FILES_IN_PROCESS and changes.bytes <= _MAX_BYTES_IN_PROCESS
        return is_small and all(path not in self.finder.stamps or self.index.view.find(path) for path in changes.paths)

    async def _index_batches(
        self, sources: Sources, queue: FileQueue, changes: ChangedFiles, *, in_process: bool
    ) -> None:
        """Index batches until there is none left."""
        for paths in queue:
            read = await sources.read_files(paths)
            texts, gone = await in_thread(partial(_changed_texts, self.index.view, paths, read))
            crashed: set[str] = set()
            for batch in await self._tools.parse(texts, crashed, in_process=in_process):
                self._tools.parsed += batch.parsed
                await self._add(batch, in_process=in_process)
            if gone := [*gone, *crashed]:
                async with self._changing:
                    await in_thread(partial(self.index.remove, *gone))
            self.finder.stamps.update({path: changes.stamps[path] for path in paths})
            self.status = replace(self.status, done=self.status.done + len(paths))
            queue.finish(paths)

    def _update_counts(self, changes: ChangedFiles) -> None:
        """Update the counts in `status`. Blocks while another thread imports numpy."""
        view = self.index.view
        self.status = replace(
            self.status,
            files=view.files,
            chunks=view.chunks,
            left_out=changes.left_out,
            binary=len(self.finder.stamps) - view.files,
        )

    async def _add(self, batch: ParsedBatch, *, in_process: bool) -> None:
        async with self._changing:
            await in_thread(partial(self.index.add, batch.segment, is_merged=in_process))
            if not in_process and (place := self.index.merge_position()) is not None:
                await self._merge_from(place)
            view = self.index.view
            self.status = replace(self.status, files=view.files, chunks=view.chunks)

    async def _merge_from(self, place: int) -> None:
        """Merge segments in a worker process, because here the screen would freeze meanwhile."""
        view = self.index.view
        merged = await self._tools.workers.merge(view.segments[place:], view.alive[place:])
        if merged is None:
            await in_thread(self.index.compact)
        else:
            self.index.replace_from(place, merged)

    def _delete_gone(self, changes: ChangedFiles) -> None:
        """Delete from the index the files that are gone."""
        gone = self.finder.stamps.keys() - changes.stamps.keys()
        self.finder.forget(gone)
        if gone:
            self.index.remove(*gone)

    def _load(self) -> None:
        """Load the saved index of this folder, or else that of another worktree of the repo."""
        self._cache.make_private()
        own = self._cache.snapshot_of(self._root)
        for path in (own, *self._cache.siblings_of(self._root)[:1]):
            saved = load_saved(path, self._settings)
            if saved is not None:
                self.index = saved.index
                # Contents of another worktree are valid, its time stamps are not; its other files are deleted by the
                # update.
                self.finder.stamps = (
                    dict(saved.stamps) if path == own else dict.fromkeys(saved.stamps, FileStamp(0, 0, -1, 0))
                )
                return

    def _delete_secrets(self, paths: Sequence[str]) -> None:
        """Delete files with secrets that an earlier version, or another name, let into index and cache."""
        secrets = list(filter(holds_secrets, self.index.view.paths()))
        blobs = {*map(self.index.blob_of, secrets), *secrets_among(self._root, paths)}
        self._tools.parser.delete(blobs)
        if secrets:
            self.finder.forget(secrets)
            self.index.remove(*secrets)
            self.index.compact()
            self._unsaved = _WORTH_SAVING

    def _save(self) -> None:
        """Save the index if the disk permits, and bound the size of the cache."""
        try:
            saved = SavedIndex(self.index, self.finder.stamps)
            size = save(self._cache.snapshot_of(self._root), saved, self._settings)
            self._cache.note(self._root)
            self._unsaved = 0
            self.status = replace(self.status, unsaved="" if size else "the index is too large")
        except StorageError as error:
            self.status = replace(self.status, unsaved=system_message(error) or str(error))
        self._tools.parser.shrink_cache()


def _changed_texts(
    view: IndexView, paths: Sequence[str], read: Mapping[str, bytes]
) -> tuple[dict[str, bytes], list[str]]:
    """Return the texts that changed, and the paths that are no text worth finding, or no longer there."""
    texts: dict[str, bytes] = {}
    gone = []
    for path in paths:
        data = read.get(path)
        if data is None or not is_searchable(path, data):
            gone.append(path)
        elif view.blob_of(path) != blob_id(data):
            texts[path] = data
    return texts, gone


async def find_likely(sources: Sources, paths: Sequence[str], words: Iterable[str]) -> Sequence[str]:
    """Return those of the files that have the most and rarest words, best first. Raises what `sources` raises."""
    likely, looked_at = LikelyFiles(words), paths[:_MAX_LOOKED_AT]
    for start in range(0, len(looked_at), _LOOKED_AT_ONCE):
        read = await sources.read_files(looked_at[start : start + _LOOKED_AT_ONCE])
        await asyncio.to_thread(likely.add, read)
    return await asyncio.to_thread(likely.best)


class LikelyFiles:
    """Counts of a query's words in files. Methods block."""

    def __init__(self, words: Iterable[str]) -> None:
        distinct = dict.fromkeys(word for word in words if len(word) >= _SHORTEST_WORD)
        self._words = [word.encode("utf-8", "surrogatepass") for word in list(distinct)[:_MAX_WORDS]]
        self._found: dict[str, tuple[list[int], list[int]]] = {}
        self._files_with = [0] * len(self._words)

    def add(self, files: Mapping[str, bytes]) -> None:
        """Look for the words in these files (path to content) and their paths."""
        for path, data in files.items():
            text, name = data.lower(), path.lower().encode("utf-8", "surrogatepass")
            inside = [number for number, word in enumerate(self._words) if word in text]
            named = [number for number, word in enumerate(self._words) if word in name]
            for number in inside:
                self._files_with[number] += 1
            if inside or named:
                self._found[path] = inside, named

    def best(self) -> Sequence[str]:
        """Return the files that have the most and rarest words, best first."""
        count = len(self._found) + 1
        weights = [math.log(count / (files or 1)) + 0.1 for files in self._files_with]
        scores = {
            path: sum(weights[number] for number in inside) + _PATH_SHARE * sum(weights[number] for number in named)
            for path, (inside, named) in self._found.items()
        }
        return sorted(scores, key=lambda path: (-scores[path], path))[:MAX_FILES]


class SavedIndex(Struct, frozen=True):
    """Index and the `stamps` of all files that were read for it; files not in the index are no text."""

    index: WorkspaceIndex
    stamps: Mapping[str, FileStamp]


def load_saved(path: Path, settings: RetrievalSettings) -> SavedIndex | None:
    """Return the index saved with equal settings, None if it cannot be used. Blocks."""
    try:
        index, extra = WorkspaceIndex.load(path)
    except DamagedIndex:
        return None
    stamps = decode_stamps(extra, list(index.view.paths()), _header(settings))
    return None if stamps is None else SavedIndex(index, stamps)


def saved_status(root: str, paths: Sequence[str], settings: RetrievalSettings, cache: CacheFolder) -> IndexStatus:
    """Return the contents of the saved index of `root`, and how many of its `paths` are left out. Blocks."""
    saved = load_saved(cache.snapshot_of(root), settings)
    status = IndexStatus(
        left_out=count_left_out(root, paths, ExcludedPaths(settings.exclude)), submodules=count_submodules(root)
    )
    if saved is None:
        return status
    view = saved.index.view
    return replace(status, files=view.files, chunks=view.chunks, binary=len(saved.stamps) - view.files)


def save(path: Path, saved: SavedIndex, settings: RetrievalSettings) -> int:
    """Save the index; return its size, 0 if it is too large to be kept. Blocks. Raises `StorageError`."""
    view = saved.index.view
    return saved.index.save(path, encode_stamps(saved.stamps, view.paths(), _header(settings)))


def _header(settings: RetrievalSettings) -> dict[str, str]:
    return {"max_tokens": str(settings.max_chunk_tokens), "format": str(FORMAT), "kinds": _KINDS}


def encode_stamps(stamps: Mapping[str, FileStamp], indexed: Iterable[str], header: Mapping[str, str]) -> bytes:
    """Return the stamps as bytes; paths that are `indexed` are not stored again."""
    first = [path for path in indexed if path in stamps]
    known = set(first)
    others = [path for path in stamps if path not in known]
    numbers = array("q")
    for path in (*first, *others):
        each = stamps[path]
        numbers.extend((each.modified_ns, each.changed_ns, _NEVER if each.fresh else each.size, each.inode))
    head = json.dumps([dict(header), len(first), others]).encode()
    return len(head).to_bytes(4, "little") + head + numbers.tobytes()


def decode_stamps(data: bytes, indexed: Sequence[str], header: Mapping[str, str]) -> dict[str, FileStamp] | None:
    """Return the encoded stamps; None if they were encoded with another header or for other indexed files."""
    size = int.from_bytes(data[:4], "little")
    try:
        stored, count, others = json.loads(data[4 : 4 + size])
        numbers = array("q", data[4 + size :])
    except (ValueError, TypeError, RecursionError):
        return None
    if stored != dict(header) or count != len(indexed) or not isinstance(others, list):
        return None
    paths = [*indexed, *others]
    if len(numbers) != _NUMBERS * len(paths) or not all(type(path) is str for path in others):
        return None
    rows = zip(*(numbers[place::_NUMBERS] for place in range(_NUMBERS)), strict=True)
    return {
        path: FileStamp(modified, changed, size, inode)
        for path, (modified, changed, size, inode) in zip(paths, rows, strict=True)
    }
