"""`agent model pull`, `list` and `rm` against a hub on this machine."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.subjects.models.model_files import HubFile, HubRevision, read_hub_name, wanted_files
from tests.e2e.machine import Done, Machine
from tests.fakes.model_hub import COMMIT, ModelHub, model_hub

SMALL, USUAL = b"GGUF" + b"s" * 3000, b"GGUF" + b"u" * 25_000_000
REPOS = {
    "ada/tiny-GGUF": {
        "tiny-Q8_0.gguf": SMALL,
        "tiny-Q4_K_M.gguf": USUAL,
        "mmproj-tiny-F16.gguf": b"GGUF",
        "big/tiny-BF16-00001-of-00002.gguf": b"GGUF1",
        "big/tiny-BF16-00002-of-00002.gguf": b"GGUF2",
    },
    "eve/escape": {"../../outside-Q8_0.gguf": SMALL},
    "eve/page": {"page-Q8_0.gguf": b"<html>no model</html>"},
}


@pytest.fixture
def hub() -> Iterator[ModelHub]:
    with model_hub(REPOS) as served:
        yield served


@pytest.fixture
def machine(tmp_path: Path, hub: ModelHub) -> Iterator[Machine]:
    made = Machine(
        tmp_path / "machine",
        {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": "hf_s3cr3t",
            "XDG_DATA_HOME": str(tmp_path / "data"),
            "HF_HUB_DISABLE_XET": "1",
        },
    )
    yield made
    made.end()


def models(tmp_path: Path) -> list[str]:
    """Return the model files that are there."""
    folder = tmp_path / "data/agent-workbench/models"
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*.gguf"))


def pull(machine: Machine, name: str) -> Done:
    return machine.agent("model", "pull", name, cwd=machine.folder)


@pytest.mark.slow
def test_a_usual_quantization_is_pulled_listed_and_removed(machine: Machine, tmp_path: Path, hub: ModelHub) -> None:
    done = pull(machine, "ada/tiny-GGUF")
    assert done.code == ExitCode.DONE, done.said
    path = Path(done.out.strip())
    assert path.read_bytes() == USUAL
    assert COMMIT[:12] in done.err
    listed = machine.agent("model", "list", cwd=machine.folder)
    assert f"pulled  ada/tiny-GGUF:Q4_K_M  25.0 MB  {path}" in listed.out
    count = len(hub.downloads())
    assert pull(machine, "ada/tiny-GGUF").code == ExitCode.DONE
    assert len(hub.downloads()) == count, "what is here is not brought again"
    assert pull(machine, "ada/tiny-GGUF:Q8_0").code == ExitCode.DONE
    assert machine.agent("model", "rm", "ada/tiny-GGUF:Q4_K_M", cwd=machine.folder).code == ExitCode.DONE
    assert models(tmp_path) == ["ada/tiny-GGUF/tiny-Q8_0.gguf"]
    assert machine.agent("model", "rm", "ada/tiny-GGUF", cwd=machine.folder).code == ExitCode.DONE
    assert models(tmp_path) == []
    again = machine.agent("model", "rm", "ada/tiny-GGUF", cwd=machine.folder)
    assert (again.code, "models there: none" in again.err) == (ExitCode.USAGE, True)


def test_a_model_in_parts_is_pulled_whole(machine: Machine, tmp_path: Path) -> None:
    done = pull(machine, "ada/tiny-GGUF:bf16")
    assert done.code == ExitCode.DONE, done.said
    assert done.out.strip().endswith("big/tiny-BF16-00001-of-00002.gguf")
    assert len(models(tmp_path)) == 2


@pytest.mark.slow
def test_a_download_that_was_cut_goes_on_where_it_was(machine: Machine, tmp_path: Path, hub: ModelHub) -> None:
    folder = tmp_path / "data/agent-workbench/models/ada/tiny-GGUF"
    hub.stall_after = 21_000_000
    running = machine.start("model", "pull", "ada/tiny-GGUF", cwd=machine.folder)
    running.until(lambda: any(each.stat().st_size for each in folder.rglob("*.incomplete")), "a part of it is there")
    running.send(signal.SIGKILL)
    hub.stall_after = None
    assert models(tmp_path) == []
    assert pull(machine, "ada/tiny-GGUF").code == ExitCode.DONE
    assert (folder / "tiny-Q4_K_M.gguf").read_bytes() == USUAL
    starts = [int(headers.get("range", headers.get("Range", "=0-"))[6:-1] or 0) for headers in hub.downloads()]
    assert starts[0] == 0 < starts[-1] <= 21_000_000


def test_the_token_goes_to_the_hub_alone_and_nothing_else_is_asked(machine: Machine, hub: ModelHub) -> None:
    hub.warning = "x; \x9b31m\x07"
    done = pull(machine, "ada/tiny-GGUF:Q8_0")
    assert not {"\x9b", "\x07"} & set(done.said), "what a hub says is not printed as it is"
    assert [path.partition("?")[0].split("/")[1:3] for _, _, path, _ in hub.requests] == [
        ["api", "models"],
        ["ada", "tiny-GGUF"],
        ["ada", "tiny-GGUF"],
    ]
    assert any(
        "hf_s3cr3t" in headers.get("authorization", headers.get("Authorization", ""))
        for _, _, _, headers in hub.requests
    )
    assert hub.downloads()
    assert all("hf_s3cr3t" not in str(headers) for headers in hub.downloads())


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("ada/tiny-GGUF:Q2_K", ExitCode.USAGE, "it has BF16, Q4_K_M, Q8_0"),
        ("ada/none", ExitCode.USAGE, "the hub has no ada/none"),
        ("../etc", ExitCode.USAGE, "is no model of a hub"),
        ("eve/escape", ExitCode.ENVIRONMENT, "a file that is not stored here"),
        ("eve/page", ExitCode.MODEL, "not with GGUF"),
    ],
)
def test_what_cannot_be_pulled_leaves_nothing(
    machine: Machine, tmp_path: Path, name: str, code: ExitCode, said: str
) -> None:
    done = pull(machine, name)
    assert (done.code, said in done.err) == (code, True), done.said
    assert models(tmp_path) == []
    assert not (tmp_path / "outside-Q8_0.gguf").exists()


def test_another_content_than_the_hub_states_is_removed(machine: Machine, tmp_path: Path, hub: ModelHub) -> None:
    hub.stated["tiny-Q8_0.gguf"] = "0" * 64
    done = pull(machine, "ada/tiny-GGUF:Q8_0")
    assert (done.code, "its checksum is another one" in done.err) == (ExitCode.MODEL, True), done.said
    assert models(tmp_path) == []


def test_without_room_nothing_is_asked_for(machine: Machine, hub: ModelHub) -> None:
    hub.sizes["tiny-Q8_0.gguf"] = 1 << 50
    done = pull(machine, "ada/tiny-GGUF:Q8_0")
    assert (done.code, "are free in" in done.err) == (ExitCode.ENVIRONMENT, True), done.said
    assert hub.downloads() == []


def test_a_hub_that_does_not_answer_is_told(machine: Machine) -> None:
    done = machine.agent(
        "model", "pull", "ada/tiny-GGUF", cwd=machine.folder, environ={"HF_ENDPOINT": "http://127.0.0.1:1"}
    )
    assert (done.code, "the hub does not answer" in done.err) == (ExitCode.MODEL, True), done.said


@pytest.mark.parametrize(
    ("path", "quant"),
    [
        ("m-Q4_K_M.gguf", "Q4_K_M"),
        ("UD-Q2_K_XL/m-UD-Q2_K_XL-00001-of-00002.gguf", "UD-Q2_K_XL"),
        ("m.IQ3_XXS.gguf", "IQ3_XXS"),
        ("m-mxfp4.gguf", "MXFP4"),
        ("Qwen3-8B.gguf", ""),
    ],
)
def test_the_quantization_is_read_from_a_name(path: str, quant: str) -> None:
    assert HubFile(path, 1, "").quant == quant


def test_a_single_file_without_a_quantization_is_taken() -> None:
    revision = HubRevision(
        read_hub_name("a/b"), COMMIT, (HubFile("model.gguf", 1, ""), HubFile("x.safetensors", 1, ""))
    )
    assert [each.path for each in wanted_files(revision)] == ["model.gguf"]


def test_parts_are_those_of_one_file() -> None:
    files = [HubFile(f"m-Q8_0-{part}.gguf", 1, "") for part in ("00001-of-00001", "00001-of-00002", "00003-of-00002")]
    name = read_hub_name("a/b")
    assert wanted_files(HubRevision(name, COMMIT, tuple(files))) == (files[0],)
    with pytest.raises(UsageError, match="'m-Q8_0' of a/b lacks some of its 2 parts"):
        wanted_files(HubRevision(name, COMMIT, tuple(files[1:])))
