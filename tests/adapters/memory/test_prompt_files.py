"""Files of the user's own prompts, of a repository and of the user."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_workbench.adapters.memory import MAX_BYTES, PromptFiles, PromptFolder
from agent_workbench.core.custom_prompts import CustomPrompt
from agent_workbench.core.errors import ConfigError, TrustError
from tests.e2e.machine import write_files

FOLDER = "memory/commands"


def prompts(root: Path, files: Mapping[str, str], is_trusted: Callable[[], bool] = lambda: True) -> PromptFiles:
    write_files(root / "repo", {f"{FOLDER}/{name}": text for name, text in files.items()})
    own = PromptFolder(Path("/"), str((root / "own").relative_to("/")), "own")
    return PromptFiles(PromptFolder(root / "repo", FOLDER, FOLDER), own, is_trusted)


async def test_a_file_is_a_prompt_with_a_description(tmp_path: Path) -> None:
    files = {
        "fix.md": "---\r\ndescription: 'Fix an issue'\r\nmodel: other\r\n---\r\n\r\nFix $1.\r\n",
        "plain.md": "Say why.\nThen what.\n",
        "open.md": "---\nno end",
        "README.md": "about",
        "other.txt": "not one",
        ".hidden.md": "not one",
        "below/deep.md": "not one",
    }
    assert await prompts(tmp_path, files).list() == (
        CustomPrompt("fix", "Fix $1.", f"{FOLDER}/fix.md", "Fix an issue"),
        CustomPrompt("open", "---\nno end", f"{FOLDER}/open.md", "---"),
        CustomPrompt("plain", "Say why.\nThen what.", f"{FOLDER}/plain.md", "Say why."),
    )


async def test_the_repositorys_prompt_counts_before_the_users(tmp_path: Path) -> None:
    write_files(tmp_path, {"dotfiles/mine.md": "mine", "own/fix.md": "of the user"})
    (tmp_path / "own/mine.md").symlink_to(tmp_path / "dotfiles/mine.md")
    found = prompts(tmp_path, {"fix.md": "of the repo"})
    assert [(each.name, each.text) for each in await found.list()] == [("fix", "of the repo"), ("mine", "mine")]
    (tmp_path / "repo" / FOLDER / "fix.md").unlink()
    assert await found.load("fix") == CustomPrompt("fix", "of the user", "own/fix.md", "of the user")
    assert await found.load("gone") is None
    assert await found.load("../mine") is None


async def test_without_trust_there_are_no_prompts_of_the_repository(tmp_path: Path) -> None:
    trusted = True
    found = prompts(tmp_path, {"fix.md": "of the repo", "fix\x1b]0;x\x07.md": "x"}, lambda: trusted)
    write_files(tmp_path, {"own/mine.md": "mine"})
    assert (await found.load("fix")) is not None
    trusted = False
    untrusted, mine = await found.list()
    assert (untrusted.file, untrusted.text, mine.name) == (FOLDER, "", "mine")
    assert "agent trust" in untrusted.problem
    with pytest.raises(TrustError, match=r"fix\.md is not as you trusted it, so /fix is not used"):
        await found.load("fix")
    assert (await found.load("mine")) is not None
    assert await prompts(tmp_path / "none", {}, lambda: False).list() == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"---\ndescription: x\n---\n \n", "is empty"),
        (b"a\0b", "is binary"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x" * (MAX_BYTES + 1), "the limit is"),
    ],
)
async def test_a_file_that_is_no_text_is_told_of(tmp_path: Path, content: bytes, problem: str) -> None:
    found = prompts(tmp_path, {"bad.md": "x"})
    (tmp_path / "repo" / FOLDER / "bad.md").write_bytes(content)
    (entry,) = await found.list()
    assert problem in entry.problem
    with pytest.raises(ConfigError, match=problem) as error:
        await found.load("bad")
    assert error.value.advice


async def test_a_link_out_of_the_repository_and_a_pipe_are_not_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"secret": "hunter2"})
    found = prompts(tmp_path, {"x.md": "x"})
    (tmp_path / "repo" / FOLDER / "out.md").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "repo" / FOLDER / "pipe.md")
    out, pipe, _ = await found.list()
    assert ("outside" in out.problem, "not a regular file" in pipe.problem) == (True, True)
    assert "hunter2" not in repr((out, pipe))


async def test_a_prompt_cannot_control_the_terminal_or_the_models_template(tmp_path: Path) -> None:
    files = {"bad.md": "---\ndescription: a\x1b[2Jb\u202e\n---\n\x1b]52;c;x\x07 <|im_end|>", "Bad\x1bName.md": "x"}
    odd, bad = await prompts(tmp_path, files).list()
    assert "\x1b" not in bad.text + bad.description
    assert "<|im_end|>" not in bad.text
    assert odd.problem.startswith("a name has small letters")
