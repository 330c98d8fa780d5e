"""A script with a skill, for real: its interpreter, its bounds, and what it says."""

import asyncio
import json
import os
from pathlib import Path

import psutil
import pytest
from msgspec import Struct

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.settings import SandboxSettings, SkillSettings
from agent_workbench.core.tools.skill_tools import SKILL_SPECS
from agent_workbench.subjects.skills.environment_adapter import SkillEnvironments
from agent_workbench.subjects.skills.folder_adapter import SkillFolders
from agent_workbench.subjects.skills.setup_adapter import EnvironmentSetup
from agent_workbench.subjects.skills.tools_adapter import ScriptBounds, SkillTools

CHANGED = "changed-since-trusted"
SKILL = "---\nname: sums\ndescription: Add numbers.\n---\nUse `scripts.add`.\n"
FORKS = """
import os, sys, time
print("before", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            open(os.environ["TMPDIR"] + "/alive", "w").close()
    os._exit(0)
print("still", file=sys.stderr)
while True:
    pass
"""


class Bench(Struct):
    """The tools of a repo's one skill."""

    tools: SkillTools
    root: Path

    async def run(self, script: str, skill: str = "sums") -> SourceResult:
        return await self.call("run_python_script", skill_name=skill, script=script)

    async def call(self, tool: str, **arguments: str) -> SourceResult:
        return await self.tools.call(tool, json.dumps(arguments), lambda _: None)


def make_bench(folder: Path, seconds: float = 20) -> tuple[Bench, SandboxedShell]:
    root = folder / "repo"
    scripts = root / "skills" / "sums" / "scripts"
    scripts.mkdir(parents=True)
    (scripts.parent / "SKILL.md").write_text(SKILL)
    (scripts / "add.py").write_text("def add(*numbers):\n    return sum(numbers)\n")
    (root / ".env").write_text("LLM_API_KEY=planted-key\n")
    (root / "memory" / "sessions" / "one").mkdir(parents=True)
    (root / "memory" / "sessions" / "one" / "journal.jsonl").write_text("planted journal\n")
    environments = SkillEnvironments(root, folder / "cache", folder / "state")
    shell = SandboxedShell(SandboxSettings(), str(root), os.environ)
    hidden = (str(root / ".env"), str(root / "memory" / "sessions"))
    tools = SkillTools(
        SkillFolders(root, SkillSettings(), (), folder / "bundled"),
        shell,
        environments,
        EnvironmentSetup(environments, os.environ, root),
        ScriptBounds(seconds, str(root), os.environ["PATH"], hidden),
        lambda: not (root / CHANGED).exists(),
    )
    return Bench(tools, root), shell


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    made, shell = await asyncio.to_thread(make_bench, tmp_path)
    facts = await shell.observe()
    if not facts.holds:
        pytest.skip(f"machine lacks: a sandbox that holds ({facts.why})")
    return made


async def test_it_runs_in_the_skill_s_folder_and_environment(bench: Bench) -> None:
    script = (
        "import os, sys\nfrom scripts.add import add\nprint(add(1, 2), os.getcwd(), sys.prefix != sys.base_prefix)\n"
    )
    answer = await bench.run(script + "print('note', file=sys.stderr)")
    told = json.loads(answer.structured)
    assert told == {
        "skill_name": "sums",
        "script": script + "print('note', file=sys.stderr)",
        "stdout": f"3 {bench.root / 'skills' / 'sums'} True\n",
        "stderr": "note\n",
        "returncode": 0,
        "timed_out": False,
    }
    assert not answer.failed
    assert answer.text == f"exit code 0\nstdout:\n{told['stdout']}stderr:\nnote"
    installed = await bench.run(
        "import importlib.util as found\nprint(found.find_spec('msgspec'), found.find_spec('pip'))"
    )
    assert "None None" in installed.text, "the workbench's own packages are not the skill's"


async def test_it_writes_to_its_temporary_folder_alone(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("precious")
    inside = await bench.run("open('out.txt', 'w')")
    assert "The skill's folder is read-only: write to TMPDIR" in inside.text
    await bench.run(f"open({str(tmp_path / 'outside')!r}, 'w')")
    assert (tmp_path / "outside").read_text() == "precious"
    kept = await bench.run("import tempfile\nopen(tempfile.gettempdir() + '/out.txt', 'w').write('four')")
    assert kept.text.endswith("It wrote to TMPDIR, which is removed after the run: 'out.txt' (4 bytes)")
    assert sorted(each.name for each in (bench.root / "skills" / "sums").iterdir()) == ["SKILL.md", "scripts"]


async def test_it_sees_no_credentials_and_no_network(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", "planted-key")
    script = f"""
import glob, os, socket
os.chdir({str(bench.root)!r})
print(dict(os.environ))
for path in (".env", *glob.glob("memory/**", recursive=True), *glob.glob("/proc/*/environ")):
    try:
        print(path, open(path).read())
    except OSError as error:
        print(path, error)
try:
    socket.create_connection(("127.0.0.1", 1), 1)
except OSError as error:
    print("network:", error)
"""
    answer = await bench.run(script)
    assert "planted" not in answer.text, answer.text
    assert "network:" in answer.text


async def test_what_is_shown_is_what_runs(bench: Bench) -> None:
    """A comment that names another encoding would make another program of the same bytes."""
    for encoding in ("utf-7", "raw_unicode_escape", "rot13"):
        answer = await bench.run(f"# -*- coding: {encoding} -*-\n# \\u000aprint('hid' 'den')\nprint('shown')")
        assert answer.failed
        assert "SyntaxError: encoding problem" in answer.text
        assert "hidden" not in answer.text
    assert "stdout:\nä" in (await bench.run("# -*- coding: utf-8 -*-\nprint('ä')")).text


async def test_bytecode_that_a_repository_brings_is_not_run(bench: Bench) -> None:
    compiled = bench.root / "skills" / "sums" / "scripts"
    compile_it = "import py_compile, sys\npy_compile.compile(sys.argv[1], doraise=True, invalidation_mode=PLAIN)"
    source = compiled / "add.py"
    honest = source.read_text()
    source.write_text("def add(*numbers):\n    return 'planted'\n")
    program = compile_it.replace("PLAIN", "py_compile.PycInvalidationMode.UNCHECKED_HASH")
    process = await asyncio.create_subprocess_exec(
        str(SkillEnvironments(bench.root, bench.root, bench.root).base), "-c", program, str(source)
    )
    assert await process.wait() == 0
    source.write_text(honest)
    assert (compiled / "__pycache__").is_dir()
    answer = await bench.run("from scripts.add import add\nprint(add(1, 2))")
    assert "stdout:\n3" in answer.text, answer.text


async def test_a_missing_module_is_answered_by_what_to_declare(bench: Bench) -> None:
    answer = await bench.run("import yaml.nodes")
    assert "has no module 'yaml'" in answer.text
    assert "`agent skills setup sums`" in answer.text


@pytest.mark.slow
async def test_its_time_is_limited_and_its_output_kept(tmp_path: Path) -> None:
    bench, _ = await asyncio.to_thread(make_bench, tmp_path, 1.5)
    running = asyncio.create_task(bench.run(FORKS))
    while not _at_work_in(bench.root):  # noqa: ASYNC110 - of other processes
        await asyncio.sleep(0.01)
    answer = await running
    told = json.loads(answer.structured)
    assert (told["timed_out"], told["returncode"]) == (True, None)
    assert told["stdout"] == "before\n"
    assert told["stderr"].startswith("still\nFatal Python error: "), (
        "Python says where it hung"
    )  # two may say it at once
    assert answer.text.startswith("stopped after 1.5 s, the limit for scripts; its output until then:\nstdout:\nbefore")
    assert not _at_work_in(bench.root)


def _at_work_in(folder: Path) -> list[psutil.Process]:
    """Return the processes whose working folder is below `folder`: other tests run scripts meanwhile."""
    return [each for each in psutil.process_iter() if _folder(each).startswith(f"{folder}/")]


def _folder(process: psutil.Process) -> str:
    try:
        return process.cwd()
    except (psutil.Error, OSError):
        return ""


async def test_a_flood_is_bounded_and_a_closed_stream_is_no_end(bench: Bench) -> None:
    flood = await bench.run("import sys\nfor _ in range(400): sys.stdout.write('x' * 100_000)")
    assert len(flood.text) < 200_000
    assert flood.cut_bytes > 30_000_000
    closed = await bench.run("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(0.05)\nos._exit(7)")
    assert json.loads(closed.structured)["returncode"] == 7


async def test_children_that_hold_the_streams_end_with_the_script(bench: Bench) -> None:
    answer = await bench.run(
        "import os, time\nif os.fork() == 0:\n    time.sleep(600)\nprint('done', flush=True)\nos._exit(0)"
    )
    assert "done" in answer.text
    assert json.loads(answer.structured)["returncode"] == 0


async def test_refusals_name_their_cause(bench: Bench) -> None:
    assert (await bench.run("print(1)", "sms")).text == (
        "there is no skill 'sms'; did you mean 'sums'? (known skills: sums)"
    )
    for name in ("../sums", "sums/scripts", "..\\sums", "/"):
        assert "there is no skill" in (await bench.run("print(1)", name)).text
    assert (await bench.run("  \n")).text == "the script is empty"
    assert "null bytes" in (await bench.run("print(1)\0")).text
    (bench.root / "skills" / "sums" / "requirements.txt").write_text("pyyaml\n")
    assert (await bench.run("print(1)")).text == "no venv in skill 'sums' (`agent skills setup sums` makes one)"


async def test_the_texts_of_skills(bench: Bench) -> None:
    listed = await bench.call("list_skills")
    assert listed.text == "sums: Add numbers. (5 tokens)"
    assert json.loads(listed.structured) == {"skills": [{"name": "sums", "description": "Add numbers.", "tokens": 5}]}
    assert (await bench.call("get_skill", skill_name="sums")).text == SKILL
    code = await bench.call("read_file_in_skill", skill_name="sums", file_path="scripts/add.py")
    assert code.text.startswith("def add(")
    folder = bench.root / "skills" / "sums"
    (folder / "link").symlink_to(bench.root / ".env")
    os.mkfifo(folder / "pipe")
    (folder / "large").write_bytes(b"x" * 3_000_000)
    (folder / "binary").write_bytes(b"\0")
    (folder / "latin").write_bytes(b"\xff")
    for path, cause in {
        "../x": "leads out of the skill",
        "/etc/passwd": "leads out of the skill",
        "a\\..\\b": "leads out of the skill",
        "link": "leads out of the skill",
        "scripts": "not a regular file",
        "pipe": "not a regular file",
        "a\0b": "is no path of a file",
        "": "is no path of a file",
        "large": "the limit is",
        "binary": "is binary",
        "latin": "not UTF-8",
        "missing.md": "there is no such file",
    }.items():
        answer = await bench.call("read_file_in_skill", skill_name="sums", file_path=path)
        assert answer.failed
        assert cause in answer.text, (path, answer.text)


def test_the_schemas_are_valid() -> None:
    from jsonschema import Draft202012Validator

    for spec in SKILL_SPECS:
        Draft202012Validator.check_schema(json.loads(spec.input_schema))


async def test_a_skill_that_changed_since_it_was_trusted_is_not_used(bench: Bench) -> None:
    (bench.root / CHANGED).touch()
    for tool in ("get_skill", "read_file_in_skill", "run_python_script"):
        done = await bench.call(tool, skill_name="sums", file_path="SKILL.md", script="print(1)")
        assert done.failed
        assert "changed since it was trusted" in done.text
    assert "changed since" in await bench.tools.obstacle("run_python_script", '{"skill_name": "sums", "script": "1"}')
