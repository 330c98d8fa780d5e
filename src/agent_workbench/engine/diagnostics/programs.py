"""Search for the programs of command lines, in the environment of commands. Only an interpreter is run.

An interpreter in the user's checkout is not run either: the repository may have brought it.
"""

import shlex
from collections.abc import Mapping, Sequence

from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.rules.command_lines import programs_of
from agent_workbench.engine.runtime.tool_context import Ports

LOOK_SECONDS = 30.0
# Modules are found, not imported; `-I` ignores a `sitecustomize` of the repo.
_HAS_MODULE = """\
import importlib.machinery, importlib.util, sys
name = sys.argv[1].partition(".")[0]
found = importlib.util.find_spec(name) or importlib.machinery.PathFinder.find_spec(name, [".", "src"])
sys.exit(found is None)"""


async def missing_programs(ports: Ports, lines: Sequence[str], *, installed_only: bool = False) -> Mapping[str, str]:
    """Return the first missing program of each command line that cannot be run.

    Programs are looked for in the user's checkout; with `installed_only` those that a path names are not, nor are they
    behind another program, which may make them (`make tests && ./tests`). Raises `ShellError`, `RepoError`, and
    `ConfigError` without an interpreter.
    """
    wanted = {
        line: [
            each for number, each in enumerate(programs_of(line)) if "/" not in each or not (installed_only or number)
        ]
        for line in lines
    }
    programs = tuple(dict.fromkeys(each for found in wanted.values() for each in found))
    if not programs:
        return {}
    folder = (await ports.workspaces.inspect()).root
    tests = [f"{_look(program)} >/dev/null 2>&1 || echo {number}" for number, program in enumerate(programs)]
    command = Command("\n".join(tests), folder, LOOK_SECONDS, await ports.environment_for(folder))
    outcome = await ports.shell.run(command, lambda _: None)
    missing = {programs[int(each)] for each in outcome.output.split() if each.isdigit() and int(each) < len(programs)}
    return {
        line: next(each for each in found if each in missing) for line, found in wanted.items() if missing & {*found}
    }


def _look(program: str) -> str:
    name, _, module = program.partition(" -m ")
    if not module:
        return f"command -v {shlex.quote(name)}"
    has_module = f'"$python" -I -c {shlex.quote(_HAS_MODULE)} {shlex.quote(module)}'
    return f"""{{
python=$(command -v {shlex.quote(name)}) && folder=$(cd -- "$(dirname -- "$python")" && pwd -P) &&
case $folder/ in "$(pwd -P)"/*) ;; *) {has_module} ;; esac; }}"""
