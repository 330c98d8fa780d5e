"""`agent --help` answers at once: it loads no library that is slow to import."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.source_tree import layer_of, subject_of

HEAVY = {
    *(
        "acp",
        "argcomplete",
        "chromadb",
        "dataclasses",
        "git",
        "httpx",
        "jsonschema",
        "mcp",
        "msgspec",
        "numpy",
        "onnxruntime",
        "procrastinate",
        "psycopg",
        "pydantic",
        "pydantic_settings",
        "rank_bm25",
        "uvicorn",
    ),
    *("rich", "textual", "tokenizers", "tree_sitter", "xllamacpp"),
}

PROBE = """
import json, sys
sys.argv = ["agent", "--help"]
code = 0
try:
    from agent_workbench.cli.main import main
    code = main()
except SystemExit as stop:
    code = stop.code
print()
print(json.dumps({"code": code or 0, "modules": sorted(sys.modules)}))
"""


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["code"] == 0
    assert "usage" in done.stdout.lower()
    libraries = {name.partition(".")[0] for name in told["modules"]}
    assert libraries & HEAVY == set()
    assert {name for name in libraries if name.startswith("tree_sitter_")} == set()


def test_the_package_itself_loads_nothing_of_ours() -> None:
    probe = "import sys, agent_workbench; print([n for n in sys.modules if n.startswith('agent_workbench.')])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_first_frame_of_the_screen_waits_for_nothing_that_a_key_or_the_session_loads() -> None:
    probe = (
        "import json, sys, agent_workbench.cli.front_end, agent_workbench.api.repo_sessions, "
        "agent_workbench.api.sessions.session_host, agent_workbench.tui.app; print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    loaded = json.loads(done.stdout)
    later = ("adapters", "engine", "core.fold", "core.patch.fit", "tui.screens", "views.reports")
    of_subjects = {name for name in loaded if subject_of(name) and layer_of(name) in {"adapters", "tui"}}
    assert (
        of_subjects | {name for name in loaded if name.startswith(tuple(f"agent_workbench.{x}." for x in later))}
        == set()
    )
    assert {name.partition(".")[0] for name in loaded} & (
        HEAVY - {"msgspec", "dataclasses", "rich", "textual"}
    ) == set()


def test_without_a_database_nothing_of_one_is_loaded(tmp_path: Path) -> None:
    commit = [
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "commit",
        "--quiet",
        "--allow-empty",
        "-mStart",
    ]
    for words in (["init", "--quiet"], commit):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / "tasks/queue/default").mkdir(parents=True)
    probe = (
        "import json, sys; from agent_workbench.cli.main import execute\n"
        "codes = [execute(each.split()) for each in ('worker status', 'inbox', 'worker --once', 'database check')]\n"
        "print(json.dumps([codes, sorted({name.partition('.')[0] for name in sys.modules})]))"
    )
    places = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "CONFIG", "CACHE")}
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **places}
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    codes, libraries = json.loads(done.stdout.splitlines()[-1])
    assert (codes[0], codes[1], codes[3]) == (0, 0, 2), done
    assert not {"psycopg", "psycopg_pool", "psycopg_binary", "procrastinate", "pynvml"} & set(libraries)
