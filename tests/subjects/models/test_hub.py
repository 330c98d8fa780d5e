"""Downloads from a hub that is faulty or hostile, and what is found in the folder of models."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_workbench.core.errors import ConfigError, ModelError, StorageError
from agent_workbench.subjects.models.hub_adapter import download, find_revision, partial_of, target_of
from agent_workbench.subjects.models.model_files import HubFile, HubRevision, read_hub_name
from tests.fakes.model_hub import COMMIT, ModelHub, model_hub

DATA = b"GGUF" + b"m" * 100_000
FILE = HubFile("m-Q8_0.gguf", len(DATA), hashlib.sha256(DATA).hexdigest())
NAME = read_hub_name("ada/m")
REVISION = HubRevision(NAME, COMMIT, (FILE,))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    with model_hub({"ada/m": {FILE.path: DATA}}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


def pull(folder: Path, file: HubFile = FILE) -> Path:
    return download(REVISION, file, folder, lambda _: None)


@pytest.mark.parametrize(("part", "downloads"), [(DATA, 0), (DATA + b"more", 1), (DATA[:50_000], 1)])
def test_what_is_there_of_a_file_is_used_if_it_can_be(
    tmp_path: Path, hub: ModelHub, part: bytes, downloads: int
) -> None:
    partial = partial_of(tmp_path, FILE)
    partial.parent.mkdir()
    partial.write_bytes(part)
    assert pull(tmp_path).read_bytes() == DATA
    assert len(hub.downloads()) == downloads


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_body_of_another_size_is_not_kept(tmp_path: Path, hub: ModelHub, size: int) -> None:
    file = HubFile(FILE.path, size, FILE.sha256)
    with pytest.raises(ModelError, match=r"that it states|not what the hub states"):
        pull(tmp_path, file)
    assert not partial_of(tmp_path, file).exists()


def test_a_body_without_end_is_ended(tmp_path: Path, hub: ModelHub) -> None:
    hub.endless = {"storage"}
    with pytest.raises(ModelError, match="sends more than the 100,004 bytes"):
        pull(tmp_path)


def test_an_answer_without_end_is_ended(hub: ModelHub) -> None:
    hub.endless = {"hub"}
    with pytest.raises(ModelError, match="more than 16,777,216 bytes"):
        find_revision(NAME)


@pytest.mark.parametrize("commit", ["../../x", "main", ""])
def test_a_revision_is_a_commit(hub: ModelHub, commit: str) -> None:
    hub.commit = commit
    with pytest.raises(ModelError, match="names no commit"):
        find_revision(NAME)


def test_a_token_that_cannot_be_read_is_named(tmp_path: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path))
    with pytest.raises(StorageError, match=str(tmp_path)):
        find_revision(NAME)


@pytest.mark.parametrize("token", ["hf_secret\nmore", "hf_secret more", "hf_secrèt"])
def test_a_token_that_cannot_be_sent_is_not_shown(hub: ModelHub, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(ConfigError, match="the hub's token contains") as caught:
        find_revision(NAME)
    assert "HF_TOKEN" in caught.value.advice
    assert not hub.requests


def test_secrets_in_an_address_are_not_shown(tmp_path: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("//", "//ada:password@"))
    hub.answers["hub"] = 302, {"Location": f"{hub.storage_url}/m?signature=secret"}, b""
    hub.answers["storage"] = 500, {}, b""
    for ask in (lambda: find_revision(NAME), lambda: pull(tmp_path)):
        with pytest.raises(ModelError, match=f"status 500 for '{hub.storage_url}/m'"):
            ask()
    hub.answers["hub"] = 500, {}, b""
    with pytest.raises(ModelError, match="status 500") as caught:
        find_revision(NAME)
    assert "password" not in str(caught.value)


@pytest.mark.parametrize(("implicit", "sent"), [("0", "Bearer hf_login"), ("1", None)])
def test_the_token_of_the_hubs_own_login_is_sent_unless_that_is_off(
    tmp_path: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch, implicit: str, sent: str | None
) -> None:
    (tmp_path / "token").write_text("hf_login\n")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HF_TOKEN_PATH", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", implicit)
    find_revision(NAME)
    ((_, _, _, headers),) = hub.requests
    assert headers.get("Authorization") == sent


@pytest.mark.parametrize("prefix", ["", "/mirror"])
def test_a_hub_below_a_path_is_asked_there_and_its_answer_bounded(
    hub: ModelHub, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.url}{prefix}/")
    hub.endless = {"hub"}
    with pytest.raises(ModelError, match="more than 16,777,216 bytes"):
        find_revision(NAME)
    ((_, _, path, _),) = hub.requests
    assert path == f"{prefix}/api/models/ada/m/revision/main?blobs=true"


def test_certificates_that_cannot_be_read_are_named(hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    with pytest.raises(ConfigError) as caught:
        find_revision(NAME)
    assert "SSL_CERT_FILE" in caught.value.advice


def _lie(**said: object) -> bytes:
    return json.dumps({"id": "ada/m", "sha": COMMIT, "siblings": [], **said}).encode()


DEEP = b'{"error":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
FILE_OF = {"rfilename": FILE.path, "lfs": {"sha256": FILE.sha256, "size": 1, "pointerSize": 1}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, DEEP),
        (500, DEEP),
        (200, b"[]"),
        (200, b'{"sha":' + b"9" * 5000 + b"}"),
        (200, _lie(siblings=3)),
        (200, _lie(siblings=[{**FILE_OF, "size": "x"}])),
        (200, _lie(siblings=[{**FILE_OF, "size": float("inf")}])),
        (200, _lie(siblings=[{**FILE_OF, "size": [1]}])),
        (500, b'{"errors": [3]}'),
    ],
)
def test_an_answer_in_another_form_is_an_error_of_the_hub(hub: ModelHub, status: int, body: bytes) -> None:
    hub.answers["hub"] = status, {}, body
    with pytest.raises(ModelError) as caught:
        find_revision(NAME)
    assert status == 500 or "HF_ENDPOINT" in caught.value.advice


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (500, {}, DEEP),
        (206, {"Content-Range": "bytes 0-1/x"}, DATA),
        (206, {"Content-Range": "bytes 0-1/" + "9" * 5000}, DATA),
        (429, {"Retry-After": "9" * 400}, b""),
        (429, {"RateLimit": '"api";r=0;t=99999999'}, b""),
    ],
)
def test_a_download_in_another_form_is_an_error_of_the_hub_and_keeps_what_came(
    tmp_path: Path, hub: ModelHub, status: int, headers: dict[str, str], body: bytes
) -> None:
    partial = partial_of(tmp_path, FILE)
    partial.parent.mkdir()
    partial.write_bytes(DATA[:50_000])
    hub.answers["storage"] = status, headers, body
    with pytest.raises(ModelError):
        pull(tmp_path)
    del hub.answers["storage"]
    assert pull(tmp_path).read_bytes() == DATA
    assert hub.downloads()[-1]["Range"] == "bytes=50000-"


def test_an_answer_that_is_no_file_has_an_end(tmp_path: Path, hub: ModelHub) -> None:
    hub.endless, hub.answers["storage"] = {"storage"}, (500, {}, b"")
    with pytest.raises(ModelError, match="status 500"):
        pull(tmp_path)


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_that_breaks_is_made_again_from_there(
    tmp_path: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch, reset: bool
) -> None:
    monkeypatch.setattr("agent_workbench.subjects.models.hub_adapter.RETRY_SECONDS", 0)
    hub.break_after, hub.reset = 30_000, reset
    told: list[int] = []
    assert download(REVISION, FILE, tmp_path, told.append).read_bytes() == DATA
    assert [headers.get("Range") for headers in hub.downloads()] == [
        *(None, "bytes=30000-", "bytes=60000-", "bytes=90000-")
    ]
    assert sum(told) == len(DATA)


def test_a_hub_that_begins_again_and_never_comes_further_is_given_up(
    tmp_path: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.subjects.models.hub_adapter.RETRY_SECONDS", 0)
    hub.ranges, hub.breaks = False, [60_000, 20_000, 50_000, 10_000, 40_000, 30_000, 100_004]
    with pytest.raises(ModelError, match="peer closed connection"):
        pull(tmp_path)
    assert len(hub.downloads()) == 6


def test_a_hub_that_is_busy_for_good_is_given_up(
    tmp_path: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.subjects.models.hub_adapter.RETRY_SECONDS", 0)
    hub.answers["storage"] = 429, {}, b""
    with pytest.raises(ModelError, match="status 429"):
        pull(tmp_path)
    assert len(hub.downloads()) == 5


def test_a_hub_that_begins_again_replaces_what_came(tmp_path: Path, hub: ModelHub) -> None:
    partial = partial_of(tmp_path, FILE)
    partial.parent.mkdir()
    partial.write_bytes(b"x" * 50_000)
    hub.answers["storage"] = 200, {}, DATA
    told: list[int] = []
    assert download(REVISION, FILE, tmp_path, told.append).read_bytes() == DATA
    assert sum(told) == len(DATA)


@pytest.mark.parametrize(
    "path", ["../x.gguf", "/x.gguf", "a/../x.gguf", "a//x.gguf", ".x/x.gguf", "a\\x.gguf", "\x07.gguf", "x" * 300, "\0"]
)
def test_only_plain_names_are_stored(tmp_path: Path, path: str) -> None:
    with pytest.raises(StorageError, match="not stored here"):
        target_of(tmp_path, HubFile(path, 1, FILE.sha256))


@pytest.mark.parametrize(
    ("size", "sha256"), [(0, FILE.sha256), (-1, FILE.sha256), (10**400, FILE.sha256), (1, ""), (1, "z" * 64)]
)
def test_a_file_without_size_and_checksum_is_not_asked_for(tmp_path: Path, size: int, sha256: str) -> None:
    with pytest.raises(ModelError, match="states no size and SHA-256"):
        target_of(tmp_path, HubFile("x.gguf", size, sha256))


def _partial(folder: Path) -> Path:
    return partial_of(folder, FILE)


@pytest.mark.parametrize("place", [_partial, lambda folder: folder / FILE.path])
def test_a_link_is_not_written_through(tmp_path: Path, hub: ModelHub, place: Callable[[Path], Path]) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "models"
    victim.write_text("mine")
    place(folder).parent.mkdir(parents=True, exist_ok=True)
    place(folder).symlink_to(victim)
    with pytest.raises(StorageError):
        pull(folder)
    assert victim.read_text() == "mine"


def test_a_folder_of_parts_that_is_a_link_is_refused(tmp_path: Path, hub: ModelHub) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".partial").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link"):
        pull(tmp_path)
    assert not list((tmp_path / "elsewhere").iterdir())
