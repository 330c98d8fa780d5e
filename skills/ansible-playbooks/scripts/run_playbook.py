"""Run one playbook with ansible-runner; the request is a JSON object on standard input.

Each run has a folder of its own for ansible-runner, below the sandbox's own /tmp: what one run leaves there, such as
`--check`, never reaches another one. Passwords are in files that only this run can read, never in an argument.
"""

import json
import shlex
import sys
import tempfile
from pathlib import Path

import ansible_runner

MAX_OUTPUT = 64_000_000
"""Characters after which a run is ended."""
PASSWORD_OPTIONS = {"vault": "--vault-password-file", "become": "--become-password-file"}


class Output:
    """Printer of what Ansible says, event by event."""

    def __init__(self) -> None:
        self.written = 0

    def handle(self, event: dict) -> bool:
        """Print an event's text at once; False: ansible-runner keeps no copy."""
        text = (event.get("stdout") or "").replace("\r\n", "\n")
        if text and not self.is_full():
            self.written += len(text)
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        return False

    def is_full(self) -> bool:
        """Return True if the run has said too much."""
        return self.written > MAX_OUTPUT


def options(request: dict, private: Path) -> list[str]:
    """Return the options of `ansible-playbook`; each value is part of its option's word."""
    words = ["--diff"]
    words += ["--check"] if request.get("check", True) else []
    for name in ("inventory", "limit", "tags"):
        words += [f"--{name}={request[name]}"] if request.get(name) else []
    if request.get("extra_vars"):
        words.append(f"--extra-vars=@{written(private / 'extra_vars.json', json.dumps(request['extra_vars']))}")
    for kind, value in request.get("passwords", {}).items():
        words.append(f"{PASSWORD_OPTIONS[kind]}={written(private / kind, value)}")
    return words


def written(path: Path, text: str) -> Path:
    """Write a file that only this user can read; return its path."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path


def main() -> int:
    """Run it; return the exit code of `ansible-playbook`."""
    request = json.load(sys.stdin)
    output = Output()
    with tempfile.TemporaryDirectory(prefix="agent-playbook-") as folder:
        private = Path(folder)
        (private / "runner").mkdir()
        done = ansible_runner.run(
            private_data_dir=str(private / "runner"),
            project_dir=str(Path.cwd()),
            playbook=str(Path.cwd() / request["playbook"]),
            cmdline=shlex.join(options(request, private)),
            event_handler=output.handle,
            cancel_callback=output.is_full,
            quiet=True,
            suppress_env_files=True,
        )
    if output.is_full():
        sys.stdout.write(f"stopped: more than {MAX_OUTPUT:,} characters of output\n")
    return int(done.rc if done.rc is not None else 1)


if __name__ == "__main__":
    sys.exit(main())
