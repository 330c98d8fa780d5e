"""The Dockerfile and what reaches its build. Nothing is built here."""

import re
import subprocess
from fnmatch import fnmatchcase

from tests.architecture.source_tree import ROOT

TEXT = (ROOT / "deploy/Dockerfile").read_text()
# Each instruction on one line, without remarks.
LINES = re.sub(r"\\\n", " ", re.sub(r"^ *#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()


def instructions(name: str, *, last: bool = True) -> list[str]:
    """Return the arguments of an instruction: in the last stage, or in all."""
    begin = max(index for index, line in enumerate(LINES) if line.startswith("FROM ")) if last else 0
    return [re.sub(r" +", " ", line.removeprefix(f"{name} ")) for line in LINES[begin:] if line.startswith(f"{name} ")]


def test_it_has_two_stages_and_runs_as_no_root() -> None:
    assert [line.rpartition(" AS ")[0] or line for line in instructions("FROM", last=False)] == [
        "python:${PYTHON_VERSION}-slim-bookworm"
    ] * 2
    (user,) = instructions("USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "a number, so that Kubernetes can see that it is no root"
    assert instructions("VOLUME") == ['["/work", "/state"]']
    assert "VERSION=" in instructions("ARG", last=False)
    for program in ("bubblewrap", "git", "tini"):
        assert program in instructions("RUN")[0]


def test_its_health_is_that_a_model_answers() -> None:
    assert instructions("HEALTHCHECK") == [
        '--interval=30s --timeout=10s --start-period=10s --retries=3 CMD ["agent-entrypoint", "consult", "tier"]'
    ]
    assert instructions("ENTRYPOINT") == ['["tini", "--", "agent-entrypoint"]']


def reaches_the_build(path: str) -> bool:
    """Return True if `.dockerignore` lets a file of the repository through: its last matching line counts."""
    through = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        # `fnmatch` lets a star cross folders, as `**` does, so no other stars may be in front of a slash.
        plain = pattern.replace("**/", "*/").replace("**", "*")
        names = [plain, plain.removeprefix("*/"), f"{plain}/*", f"{plain.removeprefix('*/')}/*"]
        if any(fnmatchcase(path, name) for name in names):
            through = line.startswith("!")
    return through


def test_only_what_is_needed_reaches_the_build() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = {path for path in listed.stdout.splitlines() if reaches_the_build(path)}
    copied = [word for line in instructions("COPY", last=False) if "--from" not in line for word in line.split()[:-1]]
    for source in copied:
        assert any(path == source or path.startswith(f"{source}/") for path in seen), source
    known = ("src/", "skills/", "docs/")
    assert {path for path in seen if not path.startswith(known)} == {
        each for each in copied if "." in each or each == "LICENSE"
    }
    secret = (".env", "src/.env", "src/a/.env.local", ".git/config", "src/debug.log", "skills/x/__pycache__/a.pyc")
    assert not [path for path in (*secret, ".idea/x", ".vscode/x", ".worktrees/a/b") if reaches_the_build(path)]
