"""The hub's library within bounds: its output, its requests, and the size of its answers."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import httpx2
from huggingface_hub import constants, get_session
from huggingface_hub import logging as hub_log
from tqdm import tqdm

from agent_workbench.core.errors import ConfigError, ModelError
from agent_workbench.system.proxies import check_proxies

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
