"""Stand-ins for programs that the scripts of `deploy/` and `scripts/` start."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.architecture.source_tree import ROOT

USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"
# It notes what it was called with, and ends as it is told.
STUB = """\
#!/bin/sh
{{ echo "pid $$"; for word in "$@"; do echo "word $word"; done; env | sed 's/^/env /'; echo end; }} >> '{log}'
{body}
"""


class Call:
    """One call of a stand-in."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        self.pid = int(lines[0].removeprefix("pid "))
        self.words = [line.removeprefix("word ") for line in lines if line.startswith("word ")]
        self.environ = dict(
            line.removeprefix("env ").split("=", 1) for line in lines if line.startswith("env ") and "=" in line
        )


class Stubs:
    """Programs in `folder/bin`, found before all others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        (folder / "bin").mkdir()
        self.home.mkdir()

    def add(self, name: str, body: str = "exit 0") -> None:
        """Make a program that does `body` in sh."""
        path = self.folder / "bin" / name
        path.write_text(STUB.format(log=self.folder / f"{name}.log", body=body))
        path.chmod(0o755)

    def calls(self, name: str) -> list[Call]:
        """Return the calls of a program so far."""
        log = self.folder / f"{name}.log"
        return [Call(text) for text in log.read_text().split("end\n") if text.strip()] if log.exists() else []

    def run(
        self,
        script: str,
        *words: str,
        environ: Mapping[str, str] | None = None,
        stdin: str = "",
        path: str = USUAL_PATH,
    ) -> tuple[subprocess.CompletedProcess[str], int]:
        """Run a script of the repository with `sh`; return how it ended, and its process id."""
        command: Sequence[str] = ["sh", str(ROOT / script), *words]
        given = {"PATH": f"{self.folder / 'bin'}:{path}", "HOME": str(self.home), **(environ or {})}
        with subprocess.Popen(
            command,
            env=given,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            out, err = process.communicate(stdin, timeout=60)
        return subprocess.CompletedProcess(command, process.returncode, out, err), process.pid


def owned_by_a_user(folder: Path) -> Path:
    """Return the folder, which belongs to somebody else than root."""
    if os.geteuid() == 0:
        os.chown(folder, 1000, 1000)
    return folder
