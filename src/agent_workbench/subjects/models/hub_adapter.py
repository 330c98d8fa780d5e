"""Hub of models: files of a revision and their download, within bounds."""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import httpx
import msgspec

from agent_workbench.core.errors import ConfigError, ModelError, StorageError, UsageError, WorkbenchError
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.version import __version__
from agent_workbench.subjects.models.model_files import HubFile, HubName, HubRevision
from agent_workbench.system.atomic_files import make_directories, storage_error
from agent_workbench.system.folder_trees import open_regular
from agent_workbench.system.locks import FileLock
from agent_workbench.system.proxies import ProxyFailed, check_proxies

MOST_INFO_BYTES, MOST_INFO_SECONDS = 16 * 1024 * 1024, 60.0
"""Bounds of what a hub says about a revision."""
MOST_PAUSE_SECONDS = 300
"""Longest pause between two requests of a download that a hub may ask for."""
_PAUSE = re.compile(r"\bt=\s*(\d+)")
_WHOLE = "agent_workbench.whole"  # a request whose answer is read at once
_HIDDEN = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
_TRIED_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_FILE_STATUS = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT})

Progress = Callable[[int], None]
"""Receiver of the number of bytes that were added."""

SECONDS = 20.0
"""Longest wait for the next bytes of an answer."""
TRIES, RETRY_SECONDS = 5, 1.0
"""Requests in a row that bring nothing before a download fails, and the pause between two of them."""
HUB = "https://huggingface.co"
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


class _Lfs(msgspec.Struct):
    sha256: str = ""


class _Sibling(msgspec.Struct):
    rfilename: str
    size: int | None = None
    lfs: _Lfs | None = None


class _ModelInfo(msgspec.Struct):
    """Part of the hub's answer about a revision that is read."""

    sha: str = ""
    siblings: list[_Sibling] = []


@contextmanager
def _client() -> Iterator[httpx.Client]:
    """Give a client of the hub, whose token goes to no other host. It honours the hub's usual variables.

    Raises `ConfigError` for a token that cannot be sent, and for variables of proxies and of certificates that cannot
    be read, `StorageError` for the file of the token.
    """
    check_proxies()
    token = _token()
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(
            "the hub's token contains a space, a line end or a letter beyond ASCII",
            advice="correct HF_TOKEN, or the file of the hub's own login",
        )
    headers = {"Accept-Encoding": "identity", "User-Agent": f"agent-workbench/{__version__}"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        client = httpx.Client(
            base_url=os.environ.get("HF_ENDPOINT", "").strip() or HUB,
            headers=headers,
            follow_redirects=True,
            timeout=SECONDS,
            event_hooks={"response": [_bound]},
        )
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigError(
            "the hub's client cannot read NO_PROXY or HF_ENDPOINT",
            advice="set NO_PROXY to names of hosts with commas between them, HF_ENDPOINT to the address of a hub",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"the hub's client cannot read its certificates: {error.strerror or error}",
            advice="set SSL_CERT_FILE to a file with certificates, or unset it",
        ) from error
    with client:
        yield client


def _token() -> str:
    """Return the token of `HF_TOKEN`, or of the hub's own login, empty without one; raise `StorageError`."""
    said = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN") or ""
    if said or os.environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return said.strip()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    path = Path(os.environ.get("HF_TOKEN_PATH") or f"{home}/token").expanduser()
    try:
        return path.read_text("ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} could not be read", advice="correct the file, or set HF_TOKEN") from error


def _bound(response: httpx.Response) -> None:
    """Bound the body of an answer that is read at once, and the pause that one asks for.

    Raises `ModelError` for one that is packed.
    """
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ModelError("the hub packs what was asked for unpacked", advice="check the address in HF_ENDPOINT")
    if (seconds := _pause_seconds(response)) > MOST_PAUSE_SECONDS:
        raise httpx.HTTPStatusError(
            f"it wants a pause of {seconds:,} seconds", request=response.request, response=response
        )
    whole = _WHOLE in response.request.extensions or response.status_code not in _FILE_STATUS
    if whole and isinstance(response.stream, httpx.SyncByteStream):
        response.stream = _BoundedStream(response.stream)


def _pause_seconds(response: httpx.Response) -> int:
    """Return the seconds that an answer says to wait, 0 if it says nothing."""
    if response.status_code not in _TRIED_AGAIN:
        return 0
    told = f"t={response.headers.get('Retry-After', '')} {response.headers.get('RateLimit', '')}"
    return max((int(digits[:9]) for digits in _PAUSE.findall(told)), default=0)


class _BoundedStream(httpx.SyncByteStream):
    """Body of an answer that ends with `ModelError` once it is too long, or takes too long."""

    def __init__(self, stream: httpx.SyncByteStream) -> None:
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
    what = f"{name.repo} at {quoted(revision)}"
    with _client() as client, _hub_errors(what):
        address = f"/api/models/{quote(name.repo)}/revision/{quote(revision, safe='')}"
        answer = client.get(address, params={"blobs": "true"}, extensions={_WHOLE: True})
        _check(answer, what)
        found = msgspec.json.decode(answer.content, type=_ModelInfo)
    commit = found.sha
    files = tuple(HubFile(each.rfilename, each.size or 0, each.lfs.sha256) for each in found.siblings if each.lfs)
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
            _client() as client,
            _hub_errors(f"{file.path} of {revision.name.repo}"),
            os.fdopen(open_regular(partial, os.O_RDWR | os.O_CREAT), "r+b") as opened,
        ):
            if opened.seek(0, os.SEEK_END) > file.size:
                opened.seek(opened.truncate(0))
            progress(opened.tell())
            address = f"/{quote(revision.name.repo)}/resolve/{revision.commit}/{quote(file.path)}"
            _fetch_rest(client, address, file, opened, progress)
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


def _fetch_rest(client: httpx.Client, address: str, file: HubFile, opened: BinaryIO, progress: Progress) -> None:
    """Append what is missing of a file, with another request where the connection breaks or the hub is busy."""
    failures, most = 0, opened.tell()
    while True:
        pause = RETRY_SECONDS
        try:
            busy = _fetch_once(client, address, file, opened, progress)
            if busy is None:
                return
            pause = max(pause, float(_pause_seconds(busy)))
            failures += 1
            if failures == TRIES:
                _check(busy, file.path)
        except (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError):
            # A hub that begins again each time may bring less than was there.
            failures = 0 if opened.tell() > most else failures + 1
            most = max(most, opened.tell())
            if failures == TRIES:
                raise
        time.sleep(pause)


def _fetch_once(
    client: httpx.Client, address: str, file: HubFile, opened: BinaryIO, progress: Progress
) -> httpx.Response | None:
    """Append what one request brings; return the answer of a hub that is busy, None if it came to its end."""
    there = opened.tell()
    with client.stream("GET", address, headers={"Range": f"bytes={there}-"} if there else {}) as answer:
        if answer.status_code in _TRIED_AGAIN:
            return answer
        _check(answer, file.path)
        if there and answer.status_code == HTTPStatus.OK:  # the hub sends the file from its start
            opened.seek(opened.truncate(0))
            progress(-there)
            there = 0
        elif there and not answer.headers.get("Content-Range", "").startswith(f"bytes {there}-"):
            raise ModelError(f"the hub sends another part of {file.path} than asked for", advice="pull it again")
        for piece in answer.iter_bytes():
            there += len(piece)
            progress(len(piece))
            if there > file.size:
                raise TooLong(f"the hub sends more than the {file.size:,} bytes that it states", advice="pull it again")
            opened.write(piece)
    return None


def _check(answer: httpx.Response, what: str) -> None:
    """Raise `UsageError` for what is not there or not shown, `httpx.HTTPStatusError` for another failure."""
    if answer.status_code in _HIDDEN:
        raise UsageError(f"the hub has no {what}, or shows it to nobody", advice=PRIVATE)
    if answer.status_code not in _FILE_STATUS:
        # A name, a password or a signature in the address is a secret.
        address = answer.url.copy_with(username=None, password=None, query=None)
        said = f"status {answer.status_code} for {quoted(str(address))}"
        raise httpx.HTTPStatusError(said, request=answer.request, response=answer)


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
    """Turn what the hub's client raises into our errors; errors of the disk pass. `what` is asked for."""
    try:
        yield
    except (OSError, WorkbenchError):
        raise
    except (httpx.HTTPError, ProxyFailed) as error:
        raise _unanswered(error) from error
    except Exception as error:
        # Numbers, forms and depths of an answer raise errors of any kind.
        raise ModelError(
            f"the hub's answer about {what} cannot be read", advice="check the address in HF_ENDPOINT"
        ) from error


def _unanswered(error: Exception) -> ModelError:
    said = str(error).partition("\n")[0][:200]
    return ModelError(f"the hub does not answer: {said}", advice="run it again: a download goes on where it was cut")
