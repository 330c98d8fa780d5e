"""Programs by absolute path, never from the current folder, the environment of child processes, and their start."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_PASSED_ON = frozenset({"HOME", "PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "XDG_CACHE_HOME"})
_LOCALE = "LC_"


def clean_path(path: str, *forbidden: str) -> str:
    """Return the entries of a `PATH` that are absolute and not inside any of the `forbidden` folders."""
    folders = [Path(folder).resolve() for folder in forbidden if folder]
    kept = [
        entry
        for entry in path.split(os.pathsep)
        if Path(entry).is_absolute() and not any(Path(entry).resolve().is_relative_to(folder) for folder in folders)
    ]
    return os.pathsep.join(dict.fromkeys(kept)) or _DEFAULT_PATH


def find_program(name: str, path: str, *forbidden: str) -> str | None:
    """Return the absolute path of the program `name` on the cleaned `path`, None where there is none.

    A `name` with a slash is a path of the caller's choice and is only made absolute.
    """
    found = shutil.which(name, path=clean_path(path, *forbidden))
    return os.path.abspath(found) if found else None  # noqa: PTH100 - a link keeps its name


def child_environment(environ: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """Return the variables that a child process needs, and those with one of `prefixes` that name no secret."""
    from agent_workbench.core.text.secrets import looks_secret  # 16 ms, which not every command line needs

    begins = (_LOCALE, *prefixes)
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED_ON or (name.startswith(begins) and not looks_secret(name))
    }


async def start_module(
    module: str, environ: Mapping[str, str], *, descriptors: Sequence[int] = (), limit: int = 65_536
) -> "asyncio.subprocess.Process":
    """Start a module of ours with pipes in our Python, without secrets; raise `OSError`.

    It gets the numbers of the inherited `descriptors` as arguments. `limit` is that of a line which is read of it, in
    bytes.
    """
    import asyncio  # 30 ms, which `agent --help` does not need

    paths = os.pathsep.join(path for path in sys.path if Path(path).is_absolute())
    # `-P`: the current folder may hold modules that pass for ours. A new session: Ctrl-C must not reach the process.
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *map(str, descriptors)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        pass_fds=descriptors,
        limit=limit,
        cwd="/",
        env={**environ, "PYTHONPATH": paths},
        start_new_session=True,
    )
