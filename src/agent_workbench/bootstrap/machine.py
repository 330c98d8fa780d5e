"""This machine, as far as its resources are looked at."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Machine


def local_machine(environ: Mapping[str, str], root: Path) -> "Machine":
    """Return this machine; no program of the repository at `root` is run for it."""
    from agent_workbench.adapters.machine.local_machine import LocalMachine

    return LocalMachine(environ, str(root))
