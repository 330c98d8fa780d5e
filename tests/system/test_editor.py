"""The user's own editor: which one it is, what it is given, and what comes back."""

from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode, WorkbenchError
from agent_workbench.system.editor import edit_in_editor, editor_command


def script(folder: Path, body: str) -> str:
    path = folder / "an editor"
    path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    path.chmod(0o755)
    return f"'{path}' --wait"


async def test_the_editor_is_given_a_private_file_and_what_it_writes_comes_back(tmp_path: Path) -> None:
    body = f'ls -l "$2" | cut -c1-10 > "{tmp_path}/mode"; echo "$2" > "{tmp_path}/name"; echo more >> "$2"'
    written = await edit_in_editor("größer\n", ".diff", {"VISUAL": script(tmp_path, body), "EDITOR": "false"})
    assert written == "größer\nmore\n"
    assert (tmp_path / "mode").read_text("utf-8") == "-rw-------\n"
    name = Path((tmp_path / "name").read_text("utf-8").strip())
    assert name.suffix == ".diff"
    assert not name.exists()


async def test_what_an_editor_leaves_that_failed_counts_for_nothing(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match="ended with exit code 3"):
        await edit_in_editor("x", ".txt", {"EDITOR": script(tmp_path, "exit 3")})
    with pytest.raises(WorkbenchError, match="cannot be run"):
        await edit_in_editor("x", ".txt", {"EDITOR": str(tmp_path / "missing")})


def test_without_an_editor_it_is_said_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match="no editor") as failure:
        editor_command({"PATH": str(tmp_path)})
    assert "$EDITOR" in failure.value.advice
    assert failure.value.exit_code is ExitCode.ENVIRONMENT, "no defect of ours"
    with pytest.raises(WorkbenchError, match="not a valid command"):
        editor_command({"EDITOR": "'vim"})


def test_an_editor_is_not_looked_for_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nano", "ours"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    path = ".::/usr/bin:/bin"
    assert Path(editor_command({"PATH": path, "EDITOR": "env nano -w"})[0]).is_absolute()
    with pytest.raises(WorkbenchError, match="no editor ours"):
        editor_command({"PATH": path, "EDITOR": "ours"})
    with pytest.raises(WorkbenchError, match="no editor"):
        editor_command({"PATH": f".:{tmp_path / 'none'}"})
    assert editor_command({"PATH": path, "EDITOR": "./ours -w"}) == ("./ours", "-w"), "so the user wants it"
