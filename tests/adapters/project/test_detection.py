"""Commands are read from the files of tools, offered only if they start, and nothing of the repo is run for it."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from agent_workbench.adapters.project import detect_project
from agent_workbench.core.repo.project_commands import DetectedProject, command_of

EVERYTHING = ("pytest", "ruff", "tox", "flake8", "python3", "go", "cargo", "cargo-clippy", "make", "just", "node")
SCRIPTS = json.dumps({"scripts": {"test": "node --test", "lint": "node lint.js"}})
JEST = json.dumps({"scripts": {"test": "NODE_ENV=test jest --ci && echo done"}})


def programs(folder: Path, *names: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch(0o755)
    return str(folder)


def detected(root: Path, files: dict[str, str], *more: str) -> DetectedProject:
    """Return what is found in a repo with these files, where every program is installed."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    path = programs(root.with_name(f"{root.name}-bin"), *EVERYTHING, "npm", "pnpm", "yarn", "bun", *more)
    return detect_project(root, f"relative:{path}")


@pytest.mark.parametrize(
    ("module", "test_command"), [("pytest", "python -m pytest -q"), ("pytes", ""), ("", "")], ids=str
)
def test_a_tool_that_only_the_interpreter_finds(tmp_path: Path, module: str, test_command: str) -> None:
    bin_folder, repo = tmp_path / "bin", tmp_path / "repo"
    bin_folder.mkdir()
    (bin_folder / "python3").write_text(f'#!/bin/sh\n[ "$4" = "{module}" ]\n')
    (bin_folder / "python3").chmod(0o755 if module else 0o644)
    repo.mkdir()
    (repo / "test_a.py").write_text("def test_a(): ...\n")
    assert detect_project(repo, str(bin_folder)).test_command == test_command


def test_an_interpreter_in_the_repo_is_not_asked(tmp_path: Path) -> None:
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
    python.chmod(0o755)
    (python.with_name("python3")).symlink_to("python")
    (tmp_path / "test_a.py").write_text("def test_a(): ...\n")
    assert detect_project(tmp_path, str(python.parent)).test_command == ""
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    ("files", "test_command", "lint_command"),
    [
        ({}, "", ""),
        ({"pyproject.toml": '[project]\ndependencies = ["pytest"]'}, "pytest -q", ""),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 1"}, "", "ruff check ."),
        ({"pyproject.toml": '[ tool . ruff.lint ]\nselect = ["ALL"]'}, "", "ruff check ."),
        ({"pyproject.toml": '[tool.ruffian]\n# [tool.ruff]\nx = "[tool.ruff]"'}, "", ""),
        ({"pyproject.toml": "broken"}, "", ""),
        ({"tox.ini": "[testenv]\ncommands = stestr run\n[flake8]\n"}, "tox -q", "flake8"),
        ({"ruff.toml": "", "tests/test_a.py": "def test_a(): ..."}, "pytest -q", "ruff check ."),
        ({"tests/test_a.py": "import unittest"}, "python -m unittest discover -s tests", ""),
        ({"tests/test_a.py": "import unittest", "tests/__init__.py": ""}, "python -m unittest", ""),
        ({"calc.py": "", "test_calc.py": "import unittest"}, "python -m unittest", ""),
        ({"calc.py": "", "calc_test.py": "def test_add(): ..."}, "pytest -q", ""),
        ({"src/shop/cart.py": "", "src/shop/test_cart.py": "def test_a(): ..."}, "pytest -q", ""),
        ({"shop/__init__.py": "", "shop/test_cart.py": "import unittest"}, "python -m unittest", ""),
        ({"src/shop/test_cart.py": "import unittest"}, "python -m unittest discover -s src/shop", ""),
        ({"test_data.py": "ROWS = [1, 2]"}, "", ""),
        ({"go.mod": "", "tools/test_gen.py": "def test_a(): ..."}, "go test ./...", "go vet ./..."),
        ({"tests/test_a.py": "import unittest, pytest"}, "pytest -q", ""),
        ({"requirements-dev.txt": "pytest\n", "go.mod": ""}, "pytest -q && go test ./...", "go vet ./..."),
        ({"go.mod": "module x"}, "go test ./...", "go vet ./..."),
        ({"Cargo.toml": ""}, "cargo test", "cargo clippy -- -D warnings"),
        ({"package.json": SCRIPTS}, "npm test", "npm run lint"),
        ({"package.json": SCRIPTS, "pnpm-lock.yaml": ""}, "pnpm test", "pnpm run lint"),
        ({"package.json": SCRIPTS, "yarn.lock": ""}, "yarn test", "yarn run lint"),
        ({"package.json": SCRIPTS, "bun.lockb": ""}, "bun run test", "bun run lint"),
        ({"package.json": json.dumps({"scripts": {"test": 'echo "no test specified" && exit 1'}})}, "", ""),
        ({"package.json": "[" * 100_000}, "", ""),
        ({"package.json": '{"scripts": 3}'}, "", ""),
        ({"package.json": '{"scripts": {"test": 3, "lint": " "}, "packageManager": 4}'}, "", ""),
        ({"Makefile": "test: build\n\ttrue\nlint format:\n\ttrue\n"}, "make test", "make lint"),
        ({"Makefile": "# test: not one\n.PHONY: test\ntest := a\ntest ::= b\ntests:\n\ttrue\n"}, "", ""),
        ({"justfile": "@test *args:\n  true\nlint:\n  true\n"}, "just test", "just lint"),
        ({"justfile": 'test := "x"\n# test:\n'}, "", ""),
        # A runner calls what can be read more exactly.
        ({"Makefile": "test:\n\ttrue\n", "go.mod": ""}, "go test ./...", "go vet ./..."),
    ],
)
def test_tests_and_linter_are_found(
    tmp_path: Path, files: dict[str, str], test_command: str, lint_command: str
) -> None:
    (root := tmp_path / "repo").mkdir()
    found = detected(root, files)
    assert (found.test_command, found.lint_command) == (test_command, lint_command)
    nowhere = detect_project(root, str(tmp_path / "nothing"))
    assert (nowhere.test_command, nowhere.lint_command) == ("", ""), "nothing of it starts"
    assert bool(nowhere.tests) == bool(test_command)


@pytest.mark.parametrize(
    ("files", "test_command"),
    [
        ({"web/package.json": SCRIPTS, "api/go.mod": ""}, "(cd api && go test ./...) && (cd web && npm test)"),
        # What a command at the root covers is not named again.
        ({"Makefile": "test:\n", "web/package.json": SCRIPTS}, "make test"),
        ({"package.json": SCRIPTS, "packages/a/package.json": SCRIPTS}, "npm test"),
        ({"go.mod": "", "tools/go.mod": ""}, "go test ./... && (cd tools && go test ./...)"),
        (
            {"pyproject.toml": "pytest=1", "lib/pyproject.toml": "pytest=1", "web/package.json": SCRIPTS},
            "pytest -q && (cd web && npm test)",
        ),
        # The lock file is that of the whole workspace.
        ({"pnpm-lock.yaml": "", "packages/a/package.json": SCRIPTS}, "(cd packages/a && pnpm test)"),
        ({"node_modules/x/package.json": SCRIPTS, ".hidden/package.json": SCRIPTS, "a/b/c/d/go.mod": ""}, ""),
        ({"a; touch owned/package.json": SCRIPTS}, "(cd 'a; touch owned' && npm test)"),
        ({"$(touch owned)/go.mod": "", "-x/go.mod": "", "new\nline/go.mod": ""}, ""),
    ],
)
def test_the_folders_of_a_monorepo_are_one_line(tmp_path: Path, files: dict[str, str], test_command: str) -> None:
    (root := tmp_path / "repo").mkdir()
    assert detected(root, files).test_command == test_command


def test_a_script_needs_its_own_programs(tmp_path: Path) -> None:
    (root := tmp_path / "repo").mkdir()
    found = detected(root, {"web/package.json": JEST})
    (command,) = found.tests
    assert (command.missing, found.test_command) == ("jest", "")
    programs(root / "node_modules/.bin", "jest")
    found = detected(root, {})
    assert found.test_command == "(cd web && npm test)"
    assert found.link == ("node_modules",)


def test_what_the_repo_brings_is_not_run(tmp_path: Path) -> None:
    (root := tmp_path / "repo").mkdir()
    canary = f"#!/bin/sh\ntouch {tmp_path}/ran\n"
    hostile = json.dumps({"scripts": {"test": f"touch {tmp_path}/ran; $(touch {tmp_path}/ran)", "lint": "`x"}})
    files = {"package.json": hostile, "Makefile": f"X := $(shell touch {tmp_path}/ran)\ntest:\n"}
    files |= {f".venv/bin/{name}": canary for name in ("python", "pytest")} | {"conftest.py": "import os"}
    for name in ("python", "pytest"):
        (root / ".venv/bin").mkdir(parents=True, exist_ok=True)
        (root / ".venv/bin" / name).touch(0o755)
    found = detected(root, files, "touch")
    assert found.python == ".venv/bin/python"
    assert found.test_command == "pytest -q && npm test"
    assert not (tmp_path / "ran").exists()


def test_folders_with_environments_of_their_own_use_them(tmp_path: Path) -> None:
    (root := tmp_path / "repo").mkdir()
    for name in ("a", "b"):
        programs(root / name / ".venv/bin", "python", "pytest")
        (root / name / "pyproject.toml").write_text('dev = ["pytest"]')
    found = detect_project(root, "/nowhere")
    assert found.python == ""
    assert found.test_command == "(cd a && .venv/bin/pytest -q) && (cd b && .venv/bin/pytest -q)"
    assert found.link == ("a/.venv", "b/.venv")
    (root / "b/pyproject.toml").unlink()
    alone = detect_project(root, "/nowhere")
    assert (alone.python, alone.test_command) == ("a/.venv/bin/python", "(cd a && pytest -q)")


def test_a_repo_of_any_size_and_kind_is_looked_at(tmp_path: Path) -> None:
    (root := tmp_path / "repo").mkdir()
    for number in range(12):
        (root / f"p{number:02}").mkdir()
        (root / f"p{number:02}/go.mod").touch()
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "package.json")
    (root / "Makefile").symlink_to("/etc/passwd")
    found = detected(root, {})
    assert len(found.tests) == 8


def test_a_joined_line_is_run_by_a_shell_and_ends_at_the_first_failure(tmp_path: Path) -> None:
    (root := tmp_path / "repo").mkdir()
    found = detected(root, {"a; touch owned/package.json": SCRIPTS, "b/go.mod": ""})
    bin_folder = root.with_name("repo-bin")
    for name in ("npm", "go"):
        (bin_folder / name).write_text(f'#!/bin/sh\necho "{name} $* in $PWD"\n')
    done = subprocess.run(
        ["/bin/sh", "-c", found.test_command],
        cwd=root,
        env={"PATH": f"{bin_folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"npm test in {root}/a; touch owned", f"go test ./... in {root}/b"]
    assert not (root / "owned").exists()


@pytest.mark.parametrize(
    ("paths", "part"),
    [
        (("web/src/a.ts", "web/b.ts"), "(cd web && npm test)"),
        (("a b/x.go",), "(cd 'a b' && go test ./...)"),
        (("web/a.ts", "core.py"), ""),
        (("website/a.ts",), ""),
        ((), ""),
    ],
)
def test_a_task_is_checked_in_the_folder_of_its_files(paths: tuple[str, ...], part: str) -> None:
    line = f"pytest -q && (cd web && npm test) && (cd {shlex.quote('a b')} && go test ./...)"
    assert command_of(line, paths) == (part or line)
    assert command_of("make test", paths) == "make test"
    assert command_of("(cd 'web && x)", paths) == "(cd 'web && x)"


@pytest.mark.parametrize(
    "line",
    [
        'echo "(cd web && bad)"',
        "make test # (cd web && bad)",
        "(cd docs && make #) && (cd web && bad)",
        "(cd docs && echo 'x) && (cd web && bad) && (cd docs && echo y')",
        "cat <<E\n(cd web && bad)\nE",
        "true \\'(cd web && bad)",
        "true || (cd web && bad)",
    ],
)
def test_what_only_looks_like_a_command_for_a_folder_is_not_run(line: str) -> None:
    assert command_of(line, ("web/a.ts",)) == line


@pytest.mark.parametrize(
    "files",
    [
        # The time must not grow with the square of the size: it would be hours.
        {"Makefile": f"a{' ' * 900_000}\ntest:\n\ttrue\n"},
        {"justfile": f"{'a' * 450_000}\n{'a ' * 200_000}\ntest:\n  true\n"},
        {"pyproject.toml": f"a{'.a' * 400_000} = 1\n[project]\ndependencies = ['pytest']"},
        {"package.json": json.dumps({"scripts": {"test": f"node {'a' * 900_000}"}})},
    ],
    ids=lambda files: next(iter(files)),
)
def test_a_file_made_to_take_long_is_read_in_a_moment(tmp_path: Path, files: dict[str, str]) -> None:
    (root := tmp_path / "repo").mkdir()
    assert detected(root, files).test_command
