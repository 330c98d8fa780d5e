"""Hub of models: the files of a revision, and their download."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # its documented name
from tqdm import tqdm

from agent_workbench.core.errors import ModelError, StorageError, UsageError
from agent_workbench.core.model_files import HubFile, HubName, HubRevision
from agent_workbench.core.text.messages import quoted
from agent_workbench.system.atomic_files import make_directories, storage_error
from agent_workbench.system.locks import FileLock

SECONDS = 20.0
"""Longest wait for what a revision has."""
MAGIC = b"GGUF"
ROOM_BYTES = 256 * 1024 * 1024
"""Disk space that stays free."""
_BLOCK = 1 << 20
_SHA256_CHARS = 64

Progress = Callable[[int], None]
"""Told how many more bytes are there."""


def find_revision(name: HubName, revision: str = "main") -> HubRevision:
    """Return the files of a revision at the commit that it names now. Blocks.

    Asks the hub of `HF_ENDPOINT`, with the token of `HF_TOKEN` or of the hub's own login. Raises `UsageError` if there
    is no such model, `ModelError` if the hub does not answer.
    """
    try:
        found = HfApi().model_info(name.repo, revision=revision, timeout=SECONDS, files_metadata=True)
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        advice = "check the name; a private or gated model needs a token in HF_TOKEN"
        raise UsageError(
            f"the hub has no {name.repo} at {quoted(revision)}, or shows it to nobody", advice=advice
        ) from error
    except (HfHubHTTPError, httpx2.HTTPError, OSError, ValueError) as error:
        raise _unanswered(error) from error
    files = (
        HubFile(each.rfilename, int(each.size or 0), str(each.lfs.sha256))
        for each in found.siblings or ()
        if each.lfs is not None
    )
    return HubRevision(name, str(found.sha), tuple(files))


def download(revision: HubRevision, file: HubFile, folder: Path, progress: Progress) -> Path:
    """Bring a file whole into `folder` and return its path; a download that was cut goes on where it was. Blocks.

    Raises `StorageError` without the room for it or for a path outside of the folder, `ModelError` if the hub does
    not answer or if what came is not what it states.
    """
    target = _inside(folder, file.path)
    if target.is_file() and _sha256(target) == file.sha256:
        progress(file.size)
        return target
    partial = partial_of(folder, file)
    make_directories(partial.parent)
    with FileLock(partial.with_suffix(".lock"), f"pull of {file.path}"):
        check_room(folder, file.size - have(partial))
        _fetch(revision, file, partial, progress)
        with partial.open("rb") as opened:
            magic = opened.read(len(MAGIC))
        if magic != MAGIC or len(file.sha256) != _SHA256_CHARS or _sha256(partial) != file.sha256:
            partial.unlink()
            what = "its checksum is another one" if magic == MAGIC else f"it begins with {magic!r}, not with GGUF"
            problem = f"{file.path} of {revision.name.repo} is not what the hub states: {what}"
            raise ModelError(problem, advice="pull it again")
        make_directories(target.parent)
        partial.rename(target)
    return target


def partial_of(folder: Path, file: HubFile) -> Path:
    """Return where a file is until it is whole."""
    return folder / ".partial" / f"{hashlib.sha256(f'{file.path} {file.sha256}'.encode()).hexdigest()[:32]}.incomplete"


def have(partial: Path) -> int:
    """Return how many bytes of a file are here. Blocks."""
    return partial.stat().st_size if partial.exists() else 0


def _fetch(revision: HubRevision, file: HubFile, partial: Path, progress: Progress) -> None:
    """Bring what is missing of a file."""
    try:
        with partial.open("r+b" if partial.exists() else "w+b") as opened:
            there = opened.seek(0, os.SEEK_END)
            http_get(
                hf_hub_url(revision.name.repo, file.path, revision=revision.commit),
                opened,
                resume_size=there,
                headers=build_hf_headers(),
                expected_size=file.size,
                tqdm_class=_bar(progress),
            )
    except (HfHubHTTPError, httpx2.HTTPError, ValueError) as error:
        raise _unanswered(error) from error
    except OSError as error:
        raise storage_error(f"{file.path} could not be written", error) from error


def check_room(folder: Path, needed: int) -> None:
    """Raise `StorageError` unless more than `needed` bytes are free where `folder` is, or will be. Blocks."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(place).free
    if free < needed + ROOM_BYTES:
        raise StorageError(
            f"{needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free in {place}",
            advice="make room (`agent model rm` removes models), or choose a smaller quantization",
        )


def _inside(folder: Path, path: str) -> Path:
    target = (folder / path).resolve()
    if not target.is_relative_to(folder.resolve()) or target == folder.resolve():
        raise StorageError(f"the hub names a file outside of the model's folder: {quoted(path)}")
    return target


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _bar(progress: Progress) -> type[Any]:
    """Return the progress bar of the hub's library that prints nothing and tells `progress`."""

    class Bar(tqdm):  # type: ignore[type-arg]  # the class takes no argument where the program runs
        def __init__(self, *said: Any, **options: Any) -> None:
            progress(int(options.get("initial") or 0))
            super().__init__(*said, **{**options, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            progress(int(n or 0))
            return None

    return Bar


def _unanswered(error: Exception) -> ModelError:
    said = str(error).partition("\n")[0][:200]
    return ModelError(f"the hub does not answer: {said}", advice="run it again: a download goes on where it was cut")
