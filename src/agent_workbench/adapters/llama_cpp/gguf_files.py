"""Model files: their GGUF headers, bounded whatever they state, their parts, and the search for them."""

import json
import os
import re
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.local_models import FoundFile, GgufFacts, server_options
from agent_workbench.core.settings.models import ServingSettings
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.workers import MachineResources
from agent_workbench.system.folder_trees import open_regular, read_regular

MAGIC = b"GGUF"
VERSIONS = (2, 3)
# Kinds of values as the format numbers them.
_NUMBERS = {
    **dict(enumerate(("B", "b", "H", "h", "I", "i", "f", "?"))),
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_MOST_KEYS = 4_096
_MOST_KEY_BYTES = 1_024
_MOST_TEXT_BYTES = 1_024
_MOST_NUMBERS, _MOST_NUMBERS_IN_ALL = 2_048, 100_000
# In all lists together: the vocabulary follows the facts, and has ten times as many texts.
_MOST_TEXTS = 10_000
_NAME_CHARS = 80
_MOST_LAYERS, _MOST_HEADS, _MOST_LENGTH, _MOST_TOKENS = 2_000, 65_536, 1 << 20, 1 << 30

# Keys of models with a recurrent state.
_STATES = ("ssm.state_size", "ssm.conv_kernel", "shortconv.l_cache", "wkv.head_size", "kda.head_dim")
_SAMPLING = ("temp", "top_k", "top_p", "min_p", "penalty_repeat")
_MOST_SAMPLING = 10_000

_Value = int | float | bool | str | tuple[int | float | bool, ...] | None

PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.IGNORECASE | re.DOTALL)
MOST_PARTS = 1_000

SECONDS = 1.0
DEPTH = 6
MOST_ENTRIES = 20_000
MOST_FILES = 100
_SUFFIX = ".gguf"
_BLOB = "sha256-"
_MANIFEST_BYTES = 64 * 1024
_MODEL_LAYER = "application/vnd.ollama.image.model"


class HeaderError(Exception):
    """The file is no GGUF file, or its header cannot be read; the message completes the sentence "the file …"."""


class _VocabularyReached(Exception):
    """A long list of texts begins."""


def read_gguf_facts(path: Path) -> GgufFacts:
    """Return the facts in the header of the file at `path`; a link is followed, a pipe is not opened.

    Blocks for milliseconds. Raises `HeaderError` for another file or a damaged header, `OSError`.
    """
    with os.fdopen(open_regular(path, follow=True), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            tensors, values = _Header(file, size).read()
        except (struct.error, OverflowError) as error:
            raise HeaderError("is cut off in its header") from error
    return _facts(tensors, values)


class _Header:
    """The header of a file that has `size` bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._texts = self._numbers = 0

    def read(self) -> tuple[int, Mapping[str, _Value]]:
        """Return the number of tensors and the values by key, as far as the vocabulary."""
        if (magic := self._file.read(len(MAGIC))) != MAGIC:
            raise HeaderError(f"begins with {magic!r}, not with GGUF")
        if (version := self._number("I")) not in VERSIONS:
            raise HeaderError(f"has version {version} of the format; 2 and 3 are known")
        tensors, keys = int(self._number("Q")), int(self._number("Q"))
        if keys > _MOST_KEYS:
            raise HeaderError(f"states {keys} entries in its header")
        values: dict[str, _Value] = {}
        try:
            for _ in range(keys):
                key = self._key()
                values[key] = self._value(int(self._number("I")))
        except _VocabularyReached:
            pass
        return tensors, values

    def _key(self) -> str:
        if (length := int(self._number("Q"))) > _MOST_KEY_BYTES:
            raise HeaderError(f"states a key of {length} bytes in its header")
        return self._bytes(length).decode("utf-8", "replace")

    def _value(self, kind: int) -> _Value:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            return self._array()
        return self._number(self._form(kind))

    def _text(self) -> str | None:
        """Return a text; None for a long one, such as a chat template, which is skipped."""
        if (length := int(self._number("Q"))) > _MOST_TEXT_BYTES:
            self._skip(length)
            return None
        return self._bytes(length).decode("utf-8", "replace")

    def _array(self) -> tuple[int | float | bool, ...] | None:
        kind, count = int(self._number("I")), int(self._number("Q"))
        if kind == _STRING:
            self._texts += count
            if self._texts > _MOST_TEXTS:
                raise _VocabularyReached
            for _ in range(count):
                self._skip(int(self._number("Q")))
            return None
        form = self._form(kind)
        if count > _MOST_NUMBERS or self._numbers + count > _MOST_NUMBERS_IN_ALL:
            self._skip(count * struct.calcsize(f"<{form}"))
            return None
        self._numbers += count
        packed = f"<{count}{form}"
        return struct.unpack(packed, self._bytes(struct.calcsize(packed)))

    @staticmethod
    def _form(kind: int) -> str:
        if kind not in _NUMBERS:
            raise HeaderError(f"has a value of the unknown kind {kind} in its header")
        return _NUMBERS[kind]

    def _number(self, form: str) -> int | float | bool:
        packed = f"<{form}"
        found: int | float | bool = struct.unpack(packed, self._bytes(struct.calcsize(packed)))[0]
        return found

    def _bytes(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise HeaderError("is cut off in its header")
        return data

    def _skip(self, length: int) -> None:
        if length > self._size - self._file.tell():
            raise HeaderError("is cut off in its header")
        self._file.seek(length, os.SEEK_CUR)


def _facts(tensors: int, values: Mapping[str, _Value]) -> GgufFacts:
    architecture = _said(values, "general.architecture")
    layers = _count(values, f"{architecture}.block_count", _MOST_LAYERS)
    heads = _counts(values, f"{architecture}.attention.head_count", layers)
    kv_heads = _counts(values, f"{architecture}.attention.head_count_kv", layers) or heads
    interval = _count(values, f"{architecture}.full_attention_interval", _MOST_LAYERS) or 1
    kv_heads = tuple(0 if layer % interval else each for layer, each in enumerate(kv_heads, 1))
    width = _count(values, f"{architecture}.embedding_length", _MOST_LENGTH)
    usual = width // max(heads) if any(heads) else 0
    return GgufFacts(
        architecture=architecture,
        name=_said(values, "general.name"),
        kind=_said(values, "general.type"),
        tensors=tensors,
        layers=layers,
        trained_tokens=_count(values, f"{architecture}.context_length", _MOST_TOKENS),
        kv_heads=kv_heads,
        key_length=_count(values, f"{architecture}.attention.key_length", _MOST_LENGTH) or usual,
        value_length=_count(values, f"{architecture}.attention.value_length", _MOST_LENGTH) or usual,
        pooling=_count(values, f"{architecture}.pooling_type", _MOST_LAYERS),
        experts=_count(values, f"{architecture}.expert_count", _MOST_HEADS),
        recurrent=any(f"{architecture}.{key}" in values for key in _STATES),
        sampling=tuple(_sampling(values)),
    )


def _sampling(values: Mapping[str, _Value]) -> Iterator[tuple[str, float]]:
    """Yield the recommended parameters that are numbers of a possible size."""
    for name in _SAMPLING:
        found = values.get(f"general.sampling.{name}")
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= _MOST_SAMPLING:
            yield name, round(float(found), 4)


def _said(values: Mapping[str, _Value], key: str) -> str:
    found = values.get(key)
    return sanitize_line(found, _NAME_CHARS) if isinstance(found, str) else ""


def _count(values: Mapping[str, _Value], key: str, most: int) -> int:
    """Return the whole number under `key`, 0 if there is none from 1 to `most`."""
    return _sane(values.get(key), most)


def _counts(values: Mapping[str, _Value], key: str, layers: int) -> tuple[int, ...]:
    """Return a number for each layer, which the header states once or for each; empty if it does not."""
    found = values.get(key)
    if isinstance(found, tuple):
        return tuple(_sane(each, _MOST_HEADS) for each in found) if len(found) == layers else ()
    each = _sane(found, _MOST_HEADS)
    return (each,) * layers if each else ()


def _sane(value: object, most: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most else 0


class ModelFile(Struct, frozen=True):
    """Facts and size of a model, of all its parts; a header that cannot be read leaves the facts unknown."""

    facts: GgufFacts
    size: int


def read_model_file(model: Path) -> ModelFile:
    """Return facts and size of the model in a file; raise `ModelUnavailable` if it cannot be read or is no GGUF."""
    advice = "set model.path to a GGUF file"
    try:
        with os.fdopen(open_regular(model, follow=True), "rb") as file:
            begins = file.read(len(MAGIC))
        size = sum(part.stat().st_size for part in parts_of(model))
    except OSError as error:
        raise ModelUnavailable(f"the model {model} cannot be read: {error.strerror}", advice=advice) from error
    if begins != MAGIC:
        raise ModelUnavailable(f"{model} is no GGUF file: it begins with {begins!r}", advice=advice)
    try:
        return ModelFile(read_gguf_facts(model), size)
    except (HeaderError, OSError):
        # The server says what is wrong with it, or knows more than we do.
        return ModelFile(GgufFacts(), size)


def parts_of(model: Path) -> tuple[Path, ...]:
    """Return the parts of a model that is split into files, else the file alone."""
    found = PART.fullmatch(model.name)
    count = int(found[3]) if found else 1
    if found is None or count > MOST_PARTS:
        return (model,)
    suffix = model.name[-len(".gguf") :]
    return tuple(model.with_name(f"{found[1]}-{part:05}-of-{found[3]}{suffix}") for part in range(1, count + 1))


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
