"""GGUF files in folders that somebody else filled: links in circles, pipes, holes, blobs, parts."""

import json
import os
import shutil
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp import gguf_files
from agent_workbench.adapters.llama_cpp.gguf_files import find_files, usual_folders
from agent_workbench.core.local_models import FoundFile, FoundModels
from agent_workbench.core.settings.models import ServingSettings
from agent_workbench.core.workers import MachineResources
from tests.adapters.llama_cpp.gguf_bytes import model_values, write_model

MACHINE = MachineResources(cores=4, physical_cores=4, memory_total_gb=32, memory_available_gb=16)
GB = 10**9


def found_in(*folders: Path) -> dict[str, FoundFile]:
    search = find_files(folders, MACHINE, ServingSettings(), 30)
    assert not search.cut
    assert len({file.path for file in search.files}) == len(search.files)
    return {file.name: file for file in search.files}


def test_each_model_says_whether_it_fits_and_how(tmp_path: Path, tiny_model_path: Path) -> None:
    shutil.copy(tiny_model_path, tmp_path / "tiny.gguf")
    write_model(tmp_path / "a/b/coder.GGUF", size=5 * GB)
    write_model(tmp_path / "huge.gguf", size=60 * GB)
    found = found_in(tmp_path)
    assert found.keys() == {"tiny.gguf", "coder.GGUF", "huge.gguf"}
    assert found["coder.GGUF"].options.context_tokens == 32768
    assert found["tiny.gguf"].usable
    assert not found["huge.gguf"].usable
    choices = FoundModels(files=tuple(found.values())).choices
    assert [Path(each.path).name for each in choices] == ["coder.GGUF", "tiny.gguf"]
    assert choices[0].settings == {"path": str(tmp_path / "a/b/coder.GGUF")}


def test_what_cannot_answer_is_left_out_with_the_reason(tmp_path: Path) -> None:
    write_model(tmp_path / "mmproj-coder.gguf")
    write_model(tmp_path / "embed.gguf", {"general.architecture": "nomic-bert"})
    write_model(tmp_path / "vocab.gguf", tensors=0)
    write_model(tmp_path / "whole-00001-of-00002.gguf", size=2 * GB)
    write_model(tmp_path / "whole-00002-of-00002.gguf", size=1 * GB)
    write_model(tmp_path / "part-00001-of-00003.gguf")
    write_model(tmp_path / "many-00001-of-99999.gguf")
    (tmp_path / "zip.gguf").write_bytes(b"PK\x03\x04")
    with (tmp_path / "hole.gguf").open("wb") as file:
        file.truncate(200 * GB)
    found = found_in(tmp_path)
    left_out = {name: file.left_out for name, file in found.items() if not file.usable}
    assert left_out == {
        "mmproj-coder.gguf": "it is a projector for images, part of another model",
        "embed.gguf": "it makes embeddings, no text",
        "vocab.gguf": "it is a vocabulary without weights",
        "part-00001-of-00003.gguf": "not all of its 3 parts are there",
        "zip.gguf": "it begins with b'PK\\x03\\x04', not with GGUF",
        "hole.gguf": "it begins with b'\\x00\\x00\\x00\\x00', not with GGUF",
    }
    assert found["whole-00001-of-00002.gguf"].size == 3 * GB
    assert "whole-00002-of-00002.gguf" not in found


def test_links_lead_nowhere_twice_and_pipes_are_not_opened(tmp_path: Path) -> None:
    models, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    write_model(elsewhere / "real.gguf")
    models.mkdir()
    (models / "in").symlink_to(elsewhere)
    (models / "link.gguf").symlink_to(elsewhere / "real.gguf")
    (elsewhere / "back").symlink_to(models)
    (models / "itself").symlink_to("itself")
    (models / "nowhere.gguf").symlink_to("gone")
    (models / "folder.gguf").mkdir()
    (models / "device.gguf").symlink_to("/dev/zero")
    os.mkfifo(models / "pipe.gguf")
    assert list(found_in(models, elsewhere, tmp_path / "none")) == ["link.gguf"]


def test_a_name_cannot_control_a_terminal_or_a_settings_file(tmp_path: Path) -> None:
    write_model(tmp_path / "a\x1b[2Jb.gguf")
    write_model(tmp_path / "new\nline.gguf")
    write_model(tmp_path / 'quote" #: {x}.gguf')
    assert list(found_in(tmp_path)) == ['quote" #: {x}.gguf']


def test_blobs_of_ollama_have_the_names_of_their_models(tmp_path: Path) -> None:
    digest = "a" * 64
    write_model(tmp_path / f"blobs/sha256-{digest}", size=GB)
    (tmp_path / f"blobs/sha256-{'b' * 64}").write_text("a template")
    manifest = tmp_path / "manifests/registry.ollama.ai/library/coder/7b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [3, {}, layer, {**layer, "digest": "sha256:../../x"}]}))
    (manifest.parent / "bad").write_text("[" * 50_000)
    os.mkfifo(manifest.parent / "pipe")
    assert list(found_in(tmp_path)) == ["coder:7b"]


def test_a_search_ends_at_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        write_model(tmp_path / f"{number:02}.gguf", {**model_values(), "general.name": "x" * number})
    assert len(found_in(tmp_path)) == 12
    monkeypatch.setattr(gguf_files, "MOST_ENTRIES", 5)
    search = find_files((tmp_path,), MACHINE, ServingSettings(), 30)
    assert (len(search.files), search.cut) == (5, True)
    assert find_files((tmp_path,), MACHINE, ServingSettings(), -1).cut


def test_the_usual_folders_are_where_the_variables_say(tmp_path: Path) -> None:
    environ = {"HOME": "/home/mia", "HF_HOME": "/big/hf", "OLLAMA_MODELS": "/big/ollama", "LLAMA_CACHE": "relative"}
    folders = [str(each) for each in usual_folders(environ, tmp_path)]
    assert folders[:2] == [str(tmp_path), "/home/mia/models"]
    assert {"/big/hf/hub", "/big/ollama", "/home/mia/.lmstudio/models"} < set(folders)
    assert not {"relative", "/home/mia/.ollama/models"} & set(folders)
