"""Hub of models: the files of a revision, and their download."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # its documented name

from agent_workbench.adapters.model_files.hub_library import Progress, TooLong, progress_bar, set_up_library
from agent_workbench.core.errors import ModelError, StorageError, UsageError, WorkbenchError
from agent_workbench.core.model_files import HubFile, HubName, HubRevision
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.atomic_files import make_directories, storage_error
from agent_workbench.system.locks import FileLock
from agent_workbench.system.regular_files import open_regular

SECONDS = 20.0
"""Longest wait for what a revision has."""
MAGIC = b"GGUF"
ROOM_BYTES = 256 * 1024 * 1024
"""Disk space that stays free."""
MOST_BYTES = 1 << 60
"""Largest size of a file that is believed: an answer may have a number of any length."""
MOST_NAME_BYTES = 200
PRIVATE = "check the name; a private or gated model needs your consent on the hub, and a token in HF_TOKEN"
_BLOCK = 1 << 20
_SHA256, _COMMIT = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


def find_revision(name: HubName, revision: str = "main") -> HubRevision:
    """Return the files of a revision at the commit that it names now. Blocks.

    Asks the hub of `HF_ENDPOINT`, with the token of `HF_TOKEN` or of the hub's own login. Raises `UsageError` if there
    is no such model, `ModelError` if the hub does not answer.
    """
    set_up_library()
    try:
        with _hub_errors(f"{name.repo} at {quoted(revision)}"):
            found = HfApi().model_info(name.repo, revision=revision, timeout=SECONDS, files_metadata=True)
            commit = str(found.sha)
            files = tuple(
                HubFile(str(each.rfilename), int(each.size or 0), str(each.lfs.sha256))
                for each in found.siblings or ()
                if each.lfs is not None
            )
    except OSError as error:
        raise storage_error(f"{error.filename or 'the token of the hub'} could not be read", error) from error
    if not _COMMIT.fullmatch(commit):
        raise ModelError(
            f"the hub names no commit of {name.repo}, but {quoted(commit)}", advice="check the address in HF_ENDPOINT"
        )
    return HubRevision(name, commit, files)


def download(revision: HubRevision, file: HubFile, folder: Path, progress: Progress) -> Path:
    """Bring a file whole into `folder` and return its path; a download that was cut goes on where it was. Blocks.

    Raises `StorageError` without the room for it or for a path outside of the folder, `ModelError` if the hub does
    not answer or if what came is not what it states.
    """
    set_up_library()
    target = target_of(folder, file)
    if target.is_file() and _sha256(target) == file.sha256:
        progress(file.size)
        return target
    partial = partial_of(folder, file)
    make_directories(partial.parent)
    if partial.parent.is_symlink():
        raise StorageError(f"{partial.parent} is a link", advice="remove it")
    with FileLock(partial.with_suffix(".lock"), f"pull of {file.path}"):
        check_room(folder, file.size - have(partial))
        if have(partial) != file.size:
            _fetch(revision, file, partial, progress)
        _check_content(revision, file, partial)
        try:
            make_directories(target.parent)
            partial.rename(target)
        except OSError as error:
            raise storage_error(f"{target} could not be written", error) from error
    return target


def target_of(folder: Path, file: HubFile) -> Path:
    """Return where a file belongs, inside of `folder`. Blocks.

    Raises `StorageError` for a name that no file here gets, `ModelError` for one without a size and a SHA-256.
    """
    parts = file.path.split("/")
    plain = file.path.isprintable() and "\\" not in file.path
    if not plain or any(not part or part[0] == "." or len(part.encode()) > MOST_NAME_BYTES for part in parts):
        raise StorageError(
            f"the hub names a file that is not stored here: {quoted(file.path)}", advice="choose another one"
        )
    target = (folder / file.path).resolve()
    if not target.is_relative_to(folder.resolve()):
        raise StorageError(f"{folder / file.path} leads out of the model's folder", advice="remove that link")
    if not 0 < file.size <= MOST_BYTES or not _SHA256.fullmatch(file.sha256):
        raise ModelError(f"the hub states no size and SHA-256 of {file.path}", advice="choose another one")
    return target


def _check_content(revision: HubRevision, file: HubFile, partial: Path) -> None:
    """Raise `ModelError`, and remove what came, if it is not what the hub states."""
    with os.fdopen(open_regular(partial), "rb") as opened:
        magic = opened.read(len(MAGIC))
    if magic == MAGIC and _sha256(partial) == file.sha256:
        return
    partial.unlink()
    what = "its checksum is another one" if magic == MAGIC else f"it begins with {magic!r}, not with GGUF"
    raise ModelError(f"{file.path} of {revision.name.repo} is not what the hub states: {what}", advice="pull it again")


def partial_of(folder: Path, file: HubFile) -> Path:
    """Return where a file is until it is whole."""
    return folder / ".partial" / f"{hashlib.sha256(f'{file.path} {file.sha256}'.encode()).hexdigest()[:32]}.incomplete"


def have(partial: Path) -> int:
    """Return how many bytes of a file are here. Blocks."""
    return partial.stat().st_size if partial.exists() else 0


def _fetch(revision: HubRevision, file: HubFile, partial: Path, progress: Progress) -> None:
    """Bring what is missing of a file, and no more than its size."""
    try:
        with (
            _hub_errors(f"{file.path} of {revision.name.repo}"),
            os.fdopen(open_regular(partial, os.O_RDWR | os.O_CREAT), "r+b") as opened,
        ):
            there = opened.seek(0, os.SEEK_END)
            if there > file.size:
                there = opened.seek(opened.truncate(0))
            http_get(
                hf_hub_url(revision.name.repo, file.path, revision=revision.commit),
                opened,
                resume_size=there,
                headers=build_hf_headers(),
                tqdm_class=progress_bar(progress, file.size),
            )
            there = opened.seek(0, os.SEEK_END)
    except TooLong:
        partial.unlink()
        raise
    except OSError as error:
        raise storage_error(f"{file.path} could not be written", error) from error
    if there != file.size:
        partial.unlink()
        amounts = f"it has {there:,} bytes, and not {file.size:,}"
        raise ModelError(f"{file.path} is not what the hub states: {amounts}", advice="pull it again")


def check_room(folder: Path, needed: int) -> None:
    """Raise `StorageError` unless more than `needed` bytes are free where `folder` is, or will be. Blocks."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(place).free
    if free < needed + ROOM_BYTES:
        raise StorageError(
            f"{needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free in {place}",
            advice="make room (`agent model rm` removes models), or choose a smaller quantization",
        )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def _hub_errors(what: str) -> Iterator[None]:
    """Turn what the hub's library raises into our errors; errors of the disk pass. `what` is asked for."""
    try:
        yield
    except WorkbenchError:
        raise
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise UsageError(f"the hub has no {what}, or shows it to nobody", advice=PRIVATE) from error
    except (HfHubHTTPError, httpx2.HTTPError) as error:
        raise _unanswered(error) from error
    except OSError as error:
        if error.errno is None:  # of the library: there came less than the length that was announced
            raise _unanswered(error) from error
        raise
    except Exception as error:
        # The library trusts what it reads: numbers, forms and depths of an answer raise errors of any kind.
        raise ModelError(
            f"the hub's answer about {what} cannot be read", advice="check the address in HF_ENDPOINT"
        ) from error


def _unanswered(error: Exception) -> ModelError:
    said = str(error).partition("\n")[0][:200]
    return ModelError(f"the hub does not answer: {said}", advice="run it again: a download goes on where it was cut")
