"""What README and pages tell people to type works: blocks marked `<!-- tested: NAME -->` run, all else is parsed."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_workbench.cli.main import REPLACED, parser
from tests.architecture.source_tree import ROOT
from tests.sandbox import USUAL_PATH

# Decisions tell of their time, and the page of commands is made from the parsers.
PAGES = [
    page for page in sorted(ROOT.glob("docs/**/*.md")) if page.parent.name != "decisions" and page.name != "commands.md"
]
DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", *(str(page.relative_to(ROOT)) for page in PAGES)]
# Pages that tests/docs types whole have their own marks.
WITH_BLOCKS = "\n".join(
    (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "README.md",
        *(f"docs/how-to/{page}.md" for page in ("look-back", "policies", "search", "skills")),
        "docs/reference/python.md",
    )
)
BLOCK = re.compile(r"(?:<!-- tested: (?P<name>[\w-]+) -->\n)?```sh\n(?P<body>.*?)```", re.DOTALL)
SPAN = re.compile(r"`(agent [a-z][^`]*)`")
PYTHON = re.compile(r"<!-- tested: python -->\n```python\n(.*?)```", re.DOTALL)
# The demo's repository, and its answers in place of a model that could do the task.
WRITE_DEMO = """
import asyncio, os, sys
from pathlib import Path
from agent_workbench.api.set_up import write_demo
from agent_workbench.core.session_request import Invocation
asyncio.run(write_demo(Path(sys.argv[1]), Invocation(Path(sys.argv[1]), os.environ, {})))
"""
AS_IN_THE_DEMO = """
from agent_workbench.adapters.demo import SCRIPTS
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.bootstrap.repo_context import RepoContext
plain = RepoContext.model
RepoContext.model = lambda repo, settings, say: ScriptedModel(plain(repo, settings, say), SCRIPTS)
"""


def commands(body: str) -> list[str]:
    """Return a block's commands without their remarks."""
    words = [shlex.split(line, comments=True) for line in body.splitlines()]
    return [shlex.join(each) for each in words if each]


def block(name: str) -> list[str]:
    (body,) = [match["body"] for match in BLOCK.finditer(WITH_BLOCKS) if match["name"] == name]
    return commands(body)


def told_in_blocks() -> set[str]:
    lines = [line for match in BLOCK.finditer(WITH_BLOCKS) for line in commands(match["body"])]
    return {line for line in lines if line.startswith("agent ")}


def told_in_passing() -> set[str]:
    told = {span for document in DOCUMENTS for span in SPAN.findall((ROOT / document).read_text(encoding="utf-8"))}
    return told - REPLACED.keys()


def run(line: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run one line as a person would in a shell; return what it printed."""
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Mapping[str, str]:
    """An environment of a user who has installed the command and used nothing yet."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{USUAL_PATH}",
        "HOME": str(tmp_path / "home"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def test_make_knows_what_is_told(shell: Mapping[str, str]) -> None:
    lines = block("make")
    assert [line.split()[:2] for line in lines] == [["make", "run"], ["make", "test"]]
    assert "agent demo --headless" in run("make --dry-run run ARGS=--headless", ROOT, shell)
    assert "pytest" in run("make --dry-run test", ROOT, shell)


@pytest.mark.slow
def test_the_example_of_a_skill(tmp_path: Path, shell: Mapping[str, str]) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (tmp_path / "agent-workbench").symlink_to(ROOT)
    author = "-c user.name=reader -c user.email=reader@example.invalid"
    run(f"git init --quiet && git {author} commit --quiet --allow-empty -m start", repo, shell)
    *lines, chat = block("calculator")  # tests/e2e/test_skills.py runs the last one, which takes a model
    assert chat.startswith("agent chat ")
    copied, trusted, done = [run(line, repo, shell) for line in lines]
    assert not copied
    assert "skill files in skills: " in trusted
    assert done == "the skill calculator declares no packages; its scripts run without a set-up\n"
    assert "calculator  (about " in run("agent skills list", repo, shell)


@pytest.mark.slow
@pytest.mark.xdist_group("llama")
def test_sessions_of_the_demo(tmp_path: Path, shell: Mapping[str, str]) -> None:
    folder = tmp_path / "shop"
    assert "answers are scripted" in run(f"agent demo --headless --folder {folder}", tmp_path, shell)
    said = [run(line, folder, shell) for line in block("sessions")]
    listed, shown, receipt, verified, commit, exported, audited, forked, tree, pictures, rules, notes, skills = said
    assert "T-1, T-2 Give the cart a discount in percent  done" in listed
    assert "T-2 done: committed" in shown
    assert "0 re-read" in receipt
    assert commit.startswith("green")
    assert verified.startswith("green")
    assert "T-2" in exported
    assert [line.split()[2:4] for line in audited.splitlines()] == [["done", "T-2"], ["done", "T-1"]]
    assert "UNPROVED" not in audited
    assert "forked: " in forked
    assert len(tree.splitlines()) > len(listed.splitlines())
    assert (folder / "gates").is_dir()
    assert "gates" in pictures
    assert rules
    assert "agent knowledge add" in notes
    assert "yaml-validation" in skills
    found, index = [run(line, folder, shell) for line in block("search")]
    assert "cart.py" in found.splitlines()[0]
    assert str(tmp_path / "cache") in index


@pytest.mark.slow
@pytest.mark.xdist_group("llama")
@pytest.mark.usefixtures("needs_sandbox")
def test_the_python_example_runs_a_task_under_its_policy(tmp_path: Path, shell: Mapping[str, str]) -> None:
    body, _ = PYTHON.findall(WITH_BLOCKS)
    program, folder = tmp_path / "example.py", tmp_path / "shop"
    program.write_text(AS_IN_THE_DEMO + body)
    run(f"python -c {shlex.quote(WRITE_DEMO)} {folder}", tmp_path, shell)
    said = run(f"python {program}", folder, shell).splitlines()
    assert said[0] == "0 SessionStarted"
    assert [line.split()[0] for line in said[:-1]] == [str(seq) for seq in range(len(said) - 1)]
    assert said[-2].endswith("SessionLeft")
    assert said[-1].startswith("DONE T-1 done: committed")
    assert run("git log -1 --format=%s agent/T-1", folder, shell)
    outside = run(f"python {program} 2>&1 || echo $?", tmp_path, shell)
    assert outside.splitlines()[-1] == "1"
    assert "Traceback" not in outside


@pytest.mark.xdist_group("llama")
@pytest.mark.slow
def test_the_python_example_of_a_conversation_gets_a_reply(tmp_path: Path, shell: Mapping[str, str]) -> None:
    _, body = PYTHON.findall(WITH_BLOCKS)
    program, folder = tmp_path / "example.py", tmp_path / "shop"
    program.write_text(AS_IN_THE_DEMO + body)
    run(f"python -c {shlex.quote(WRITE_DEMO)} {folder}", tmp_path, shell)
    assert run(f"python {program}", folder, shell).startswith("['grep'] `total()` in `shop/cart.py` adds up")


@pytest.mark.parametrize("line", sorted(told_in_blocks()))
def test_every_command_in_a_block_is_one(line: str) -> None:
    parser().parse_args(shlex.split(line)[1:])


@pytest.mark.parametrize("span", sorted(told_in_passing()))
def test_every_verb_and_flag_told_in_passing_is_one(span: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(span)[1:]
    with pytest.raises(SystemExit) as end:
        parser().parse_args([*words, "--help"])
    assert end.value.code == 0
    known = capsys.readouterr().out
    assert [word for word in words if word.startswith("--") and word not in known] == []


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1_100
