"""Search for GGUF files in the folders where programs for models keep them. Nothing but headers is read."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.llama_cpp.gguf_header import PART, HeaderError, parts_of, read_gguf_facts
from agent_workbench.core.local_models import FoundFile, server_options
from agent_workbench.core.settings.models import ServingSettings
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.workers import MachineResources
from agent_workbench.system.folder_trees import read_regular

SECONDS = 1.0
DEPTH = 6
MOST_ENTRIES = 20_000
MOST_FILES = 100
_SUFFIX = ".gguf"
_BLOB = "sha256-"
_MANIFEST_BYTES = 64 * 1024
_MODEL_LAYER = "application/vnd.ollama.image.model"
_NAME_CHARS = 80


class FoundFiles(Struct, frozen=True):
    """The files that were found, and True if the search ended before it had seen all."""

    files: tuple[FoundFile, ...] = ()
    cut: bool = False


class _Search:
    """Bounds of one search, and what was seen: a folder or a file that has several names counts once."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._left = MOST_ENTRIES
        self._seen: set[tuple[int, int]] = set()
        self.cut = False

    def goes_on(self) -> bool:
        """Count an entry, and return False at a bound."""
        self._left -= 1
        self.cut = self.cut or self._left < 0 or time.monotonic() > self._end
        return not self.cut

    def is_new(self, status: os.stat_result) -> bool:
        """Return True the first time."""
        key = status.st_dev, status.st_ino
        new = key not in self._seen
        self._seen.add(key)
        return new


def usual_folders(environ: Mapping[str, str], own: Path) -> tuple[Path, ...]:
    """Return the folders of models: our `own`, ~/models, and those of llama.cpp, the hub, LM Studio and Ollama."""
    home = Path(environ.get("HOME") or "/nonexistent")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    hub = environ.get("HF_HUB_CACHE") or Path(environ.get("HF_HOME") or cache / "huggingface") / "hub"
    folders = (
        own,
        home / "models",
        Path(environ.get("LLAMA_CACHE") or cache / "llama.cpp"),
        home / "Library/Caches/llama.cpp",
        Path(hub),
        home / ".lmstudio/models",
        cache / "lm-studio/models",
        Path(environ.get("OLLAMA_MODELS") or home / ".ollama/models"),
        Path("/usr/share/ollama/.ollama/models"),
    )
    return tuple(dict.fromkeys(each for each in folders if each.is_absolute()))


def find_files(
    folders: Sequence[Path], machine: MachineResources, said: ServingSettings, seconds: float = SECONDS
) -> FoundFiles:
    """Return the models in the folders, and how each would be served on `machine` with the settings `said`. Blocks.

    Links are followed, and lead nowhere twice. Pipes and devices are not opened.
    """
    search = _Search(seconds)
    names = {path: name for folder in folders for path, name in _ollama_names(folder, search)}
    found: list[FoundFile] = []
    for folder in folders:
        for path in _walk(folder, search):
            if len(found) == MOST_FILES:
                search.cut = True
                break
            if (file := _described(path, names.get(path, ""), machine, said)) is not None:
                found.append(file)
    return FoundFiles(tuple(found), search.cut)


def _walk(top: Path, search: _Search) -> Iterator[Path]:
    """Yield the files that may be models, the nearest first."""
    waiting = [(top, 0)]
    while waiting:
        folder, depth = waiting.pop(0)
        try:
            if not search.is_new(folder.stat()):
                continue
            with os.scandir(folder) as entries:
                listed = sorted(_bounded(entries, search), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            try:
                if entry.is_dir():
                    waiting += [(folder / entry.name, depth + 1)] if depth < DEPTH else []
                elif _may_be_model(entry.name) and entry.is_file() and search.is_new(entry.stat()):
                    yield folder / entry.name
            except OSError:  # a link to nowhere, or in a circle
                continue


def _bounded(entries: Iterator[os.DirEntry[str]], search: _Search) -> Iterator[os.DirEntry[str]]:
    for entry in entries:
        if not search.goes_on():
            return
        yield entry


def _may_be_model(name: str) -> bool:
    """Return True for the name of a GGUF file (the first part of a split one), or of a blob of any content."""
    if name.startswith(_BLOB):
        return True
    part = PART.fullmatch(name)
    return name.lower().endswith(_SUFFIX) and (part is None or int(part[2]) == 1)


def _described(path: Path, name: str, machine: MachineResources, said: ServingSettings) -> FoundFile | None:
    """Return the model in a file; None for a blob that is none, and for a path that no settings file can have."""
    blob = path.name.startswith(_BLOB)
    shown = sanitize_line(name or path.name, _NAME_CHARS)
    if not str(path).isprintable():
        return None
    parts = parts_of(path)
    try:
        size = sum(part.stat().st_size for part in parts)
    except OSError:
        return FoundFile(str(path), shown, path.stat().st_size, left_out=f"not all of its {len(parts)} parts are there")
    try:
        facts = read_gguf_facts(path)
    except (HeaderError, OSError) as error:
        return None if blob else FoundFile(str(path), shown, size, left_out=f"it {_words(error)}")
    named = "mmproj" if "mmproj" in path.name.lower() else ""
    if reason := facts.no_language_model or (named and "it is a projector for images, part of another model"):
        return FoundFile(str(path), shown, size, left_out=reason)
    return FoundFile(str(path), shown, size, server_options(facts, size, machine, said))


def _words(error: Exception) -> str:
    return f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)


def _ollama_names(folder: Path, search: _Search) -> Iterator[tuple[Path, str]]:
    """Yield the blobs of Ollama's models with the names of the models."""
    top = folder / "manifests"
    for place, folders, files in os.walk(top):
        folders.sort()
        depth = len(Path(place).relative_to(top).parts)
        if depth >= DEPTH:
            folders.clear()
        for file in sorted(files):
            if not search.goes_on():
                return
            for digest in _model_layers(Path(place) / file):
                yield folder / "blobs" / digest.replace(":", "-", 1), f"{Path(place).name}:{file}"


def _model_layers(manifest: Path) -> Iterator[str]:
    try:
        said = json.loads(read_regular(manifest, _MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return
    layers = said.get("layers") if isinstance(said, dict) else None
    for layer in layers if isinstance(layers, list) else ():
        digest = layer.get("digest") if isinstance(layer, dict) and layer.get("mediaType") == _MODEL_LAYER else None
        if isinstance(digest, str) and "/" not in digest:
            yield digest
