"""Lint one playbook of a folder with ansible-lint; print its findings as JSON. Nothing is fetched or written there."""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run ansible-lint in the folder; return its exit code: 0 without findings, 2 with some."""
    folder, playbook = sys.argv[1:]
    words = ["--offline", "--nocolor", "-q", "--format", "json", "--", playbook]
    program = Path(sys.executable).with_name("ansible-lint")
    return subprocess.run([str(program), *words], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
