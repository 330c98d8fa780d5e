"""Hub of models: files of a revision and their download, by the hub's library within bounds."""

import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import HfApi, constants, get_session, hf_hub_url
from huggingface_hub import logging as hub_log
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # its documented name
from tqdm import tqdm

from agent_workbench.core.errors import ConfigError, ModelError, StorageError, UsageError, WorkbenchError
from agent_workbench.core.model_files import HubFile, HubName, HubRevision
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.atomic_files import make_directories, storage_error
from agent_workbench.system.locks import FileLock
from agent_workbench.system.proxies import check_proxies
from agent_workbench.system.regular_files import open_regular

MOST_INFO_BYTES, MOST_INFO_SECONDS = 16 * 1024 * 1024, 60.0
"""Bounds of what a hub says about a revision."""
MOST_PAUSE_SECONDS = 300
"""Longest pause between two requests of a download that a hub may ask for."""
_PAUSE = re.compile(r"\bt=\s*(\d+)")
_TRIED_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_FILE_STATUS = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT})
WRITE_BYTES = 1 << 20
"""Bytes of a download that are written at once; those not yet written are lost when it is cut."""

Progress = Callable[[int], None]
"""Receiver of the number of bytes that were added."""

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


class TooLong(ModelError):
    """A download has more bytes than the hub states."""


def progress_bar(progress: Progress, size: int) -> type[Any]:
    """Return a silent progress bar for the hub's library; it calls `progress`, and ends a download beyond `size`."""
    there = 0

    def add(count: int) -> None:
        nonlocal there
        there += count
        progress(count)
        if there > size:
            raise TooLong(f"the hub sends more than the {size:,} bytes that it states", advice="pull it again")

    class Bar(tqdm):  # type: ignore[type-arg]  # the class takes no argument where the program runs
        def __init__(self, *said: Any, **options: Any) -> None:
            add(int(options.get("initial") or 0))
            super().__init__(*said, **{**options, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            add(int(n or 0))
            return None

    return Bar


def set_up_library() -> None:
    """Keep the hub's library from printing and from requests of its own, and bound the answers that it reads.

    Raises `ConfigError` for variables of proxies and of certificates that its client cannot read.
    """
    check_proxies()
    constants.HF_HUB_DISABLE_TELEMETRY = True  # else it asks the hub which programs start agents, and tells which did
    constants.DOWNLOAD_CHUNK_SIZE = WRITE_BYTES
    hub_log.set_verbosity(logging.CRITICAL)  # it prints what a server says as it is
    try:
        client = get_session()
    except (httpx2.InvalidURL, ValueError) as error:
        raise ConfigError(
            "the hub's client cannot read NO_PROXY", advice="set it to names of hosts with commas between them"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"the hub's client cannot read its certificates: {error.strerror or error}",
            advice="set SSL_CERT_FILE to a file with certificates, or unset it",
        ) from error
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks["response"] = [_bound]


def _bound(response: httpx2.Response) -> None:
    """Bound the body of an answer that is read at once, and the pause that one asks for.

    Raises `ModelError` for one that is packed.
    """
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ModelError("the hub packs what was asked for unpacked", advice="check the address in HF_ENDPOINT")
    if (seconds := _pause_seconds(response)) > MOST_PAUSE_SECONDS:
        raise httpx2.HTTPStatusError(
            f"it wants a pause of {seconds:,} seconds", request=response.request, response=response
        )
    whole = response.url.path.startswith("/api/") or response.status_code not in _FILE_STATUS
    if whole and isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _BoundedStream(response.stream)


def _pause_seconds(response: httpx2.Response) -> int:
    """Return the seconds that the library would sleep after an answer because a header says so."""
    if response.status_code not in _TRIED_AGAIN:
        return 0
    told = f"t={response.headers.get('Retry-After', '')} {response.headers.get('RateLimit', '')}"
    return max((int(digits[:9]) for digits in _PAUSE.findall(told)), default=0)


class _BoundedStream(httpx2.SyncByteStream):
    """Body of an answer that ends with `ModelError` once it is too long, or takes too long."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        left, until = MOST_INFO_BYTES, time.monotonic() + MOST_INFO_SECONDS
        for piece in self._stream:
            left -= len(piece)
            if left < 0 or time.monotonic() > until:
                raise ModelError(
                    f"the hub's answer has more than {MOST_INFO_BYTES:,} bytes, or takes too long",
                    advice="check the address in HF_ENDPOINT",
                )
            yield piece

    def close(self) -> None:
        self._stream.close()


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
