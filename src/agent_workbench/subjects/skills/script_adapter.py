"""A run of one Python script with a skill: in the sandbox, in the skill's folder and environment."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.ports.workspace import Command, OnOutput, Shell
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.skills import SkillEntry
from agent_workbench.core.tools.skill_tools import ScriptCall
from agent_workbench.subjects.skills.environment_adapter import SkillEnvironment
from agent_workbench.system.folder_trees import remove_tree
from agent_workbench.system.programs import clean_path

MAX_STREAM_CHARS = 90_000
MAX_NAMED = 20
FILE = "script.py"
_BOM = "\ufeff"
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '([A-Za-z0-9_.]{1,100})'", re.MULTILINE)
_READ_ONLY = re.compile(r"^OSError: \[Errno 30\] ", re.MULTILINE)


class ScriptBounds(Struct, frozen=True):
    """Limits of scripts: their time, and paths that they do not see. `path` is the user's `PATH`, `root` the repo."""

    seconds: float
    root: str
    path: str
    hidden: tuple[str, ...] = ()


class ScriptOutcome(Struct, frozen=True):
    """Outcome of a script; `files` are those that it left in its temporary folder, which is gone."""

    call: ScriptCall
    outcome: CommandOutcome
    seconds: float
    files: tuple[str, ...] = ()

    @property
    def timed_out(self) -> bool:
        """True if the script was stopped because its time was over."""
        return self.outcome.timed_out

    @property
    def text(self) -> str:
        """The outcome for the model: how it ended, both streams, and advice where the cause is known."""
        ended = self.outcome.reason or f"exit code {self.outcome.exit_code}"
        if self.timed_out:
            ended = f"stopped after {self.seconds:g} s, the limit for scripts; its output until then:"
        stdout, stderr = _clip(self.outcome.output), _clip(self.outcome.stderr)
        parts = [ended, f"stdout:\n{stdout}" if stdout.strip() else "stdout: empty"]
        parts += [f"stderr:\n{stderr}"] if stderr.strip() else []
        if self.files:
            parts.append(f"It wrote to TMPDIR, which is removed after the run: {', '.join(self.files)}")
        return "\n".join(part.rstrip("\n") for part in [*parts, *self._advice()])

    @property
    def structured(self) -> str:
        """The outcome as a JSON object."""
        fields = {
            "skill_name": self.call.skill,
            "script": self.call.script,
            "stdout": _clip(self.outcome.output),
            "stderr": _clip(self.outcome.stderr),
            "returncode": self.outcome.exit_code,
            "timed_out": self.timed_out,
        }
        return json.dumps(fields, ensure_ascii=False)

    def _advice(self) -> list[str]:
        advice = []
        if missing := _MISSING.search(self.outcome.stderr):
            package = missing[1].partition(".")[0]
            advice.append(
                f"The environment of the skill has no module {package!r}. The user can add its package to the skill's "
                f"requirements.txt and run `agent skills setup {self.call.skill}`."
            )
        if _READ_ONLY.search(self.outcome.stderr):
            advice.append("The skill's folder is read-only: write to TMPDIR (tempfile.gettempdir()).")
        return advice


async def run_script(
    shell: Shell,
    skill: SkillEntry,
    environment: SkillEnvironment,
    call: ScriptCall,
    bounds: ScriptBounds,
    on_output: OnOutput,
) -> ScriptOutcome:
    """Run the script and return its outcome; its temporary folder is gone then. Raises `ShellError`, `OSError`."""
    temporary = await asyncio.to_thread(_prepare, call.script)
    try:
        command = await asyncio.to_thread(_command, skill, environment, bounds, temporary)
        outcome = await shell.run(command, on_output)
        files = await asyncio.to_thread(_left_files, temporary)
    finally:
        await asyncio.shield(asyncio.to_thread(_remove, temporary))
    return ScriptOutcome(call, _with_plain_name(outcome, temporary), bounds.seconds, files)


def _prepare(script: str) -> str:
    folder = os.path.realpath(tempfile.mkdtemp(prefix="agent-script-"))
    # With this mark at its start Python reads the file as UTF-8 or not at all, whatever a comment in it says: under
    # another encoding the text that was shown could be other code.
    Path(folder, FILE).write_text(_BOM + script, encoding="utf-8", newline="")
    return folder


def _command(skill: SkillEntry, environment: SkillEnvironment, bounds: ScriptBounds, temporary: str) -> Command:
    folder, program = os.path.realpath(skill.folder), str(environment.python)
    return Command(
        # The command starts in its temporary folder, the only one that it may write to.
        line=f"cd {shlex.quote(folder)} && exec {shlex.quote(program)} {shlex.quote(f'{temporary}/{FILE}')}",
        folder=temporary,
        timeout_seconds=bounds.seconds,
        environment=_variables(folder, environment, bounds, temporary),
        readable=(folder, str(environment.folder), str(environment.python.resolve().parent.parent)),
        hidden=bounds.hidden,
        apart=True,
        private=True,
    )


def _variables(folder: str, environment: SkillEnvironment, bounds: ScriptBounds, temporary: str) -> Mapping[str, str]:
    variables = {
        "PATH": os.pathsep.join((str(environment.python.parent), clean_path(bounds.path, bounds.root, folder))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": folder,
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": temporary,
        "VIRTUAL_ENV": str(environment.folder),
    }
    return variables | ({"PYTHONPYCACHEPREFIX": str(environment.bytecode)} if environment.bytecode else {})


def _left_files(temporary: str) -> tuple[str, ...]:
    """Return what the script left in its temporary folder: names with sizes, the first of many."""
    found: list[str] = []
    with os.scandir(temporary) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name == FILE:
                continue
            size = (
                "folder"
                if entry.is_dir(follow_symlinks=False)
                else f"{entry.stat(follow_symlinks=False).st_size} bytes"
            )
            found.append(f"{entry.name!r} ({size})")
    more = len(found) - MAX_NAMED
    return (*found[:MAX_NAMED], f"and {more} more") if more > 0 else tuple(found)


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        remove_tree(folder)


def _with_plain_name(outcome: CommandOutcome, temporary: str) -> CommandOutcome:
    """Return the outcome with the script's file by its name alone, and its first line without the mark."""
    path = f"{temporary}/{FILE}"
    return CommandOutcome(
        outcome.exit_code,
        outcome.output.replace(path, FILE),
        outcome.seconds,
        outcome.cut_bytes,
        outcome.reason,
        outcome.stderr.replace(path, FILE).replace(f"\n    {_BOM}", "\n    "),
    )


def _clip(text: str) -> str:
    if len(text) <= MAX_STREAM_CHARS:
        return text
    half = MAX_STREAM_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters cut …\n{text[-half:]}"
