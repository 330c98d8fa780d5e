"""Parts that an installation may lack: the libraries of an extra, and the folder of a subject."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from typing import TypeVar

from agent_workbench.core.errors import ExtraMissing

PACKAGE = "agent-workbench"
_SUBJECTS = "agent_workbench.subjects"
_T = TypeVar("_T")


class Extra(StrEnum):
    """An extra of `pyproject.toml`, named after the verb or the setting that needs it."""

    ACP = "acp"
    """`agent acp`."""
    FLEET = "fleet"
    """The setting `database.url_env`, and `agent database`."""
    MCP = "mcp"
    """`agent mcp`, and tools of the servers in the setting `mcp_servers`."""
    VECTORS = "vectors"
    """The setting `retrieval.embeddings.provider`."""
    WEB = "web"
    """`agent tui --web`."""


IMPORTS: Mapping[Extra, tuple[str, ...]] = {
    Extra.ACP: ("acp",),
    Extra.FLEET: ("procrastinate", "psycopg", "psycopg_pool"),
    Extra.MCP: ("mcp", "uvicorn"),
    Extra.VECTORS: ("chromadb",),
    Extra.WEB: ("textual_serve",),
}
"""Libraries that come with an extra alone. The package that imports them calls `require_extra` in its `__init__`."""


def has_extra(extra: Extra) -> bool:
    """Return True if the libraries of an extra are installed; none of them is loaded."""
    return all(find_spec(name) is not None for name in IMPORTS[extra])


def require_extra(extra: Extra) -> None:
    """Raise `ExtraMissing` if the libraries of an extra are not installed."""
    if not has_extra(extra):
        raise missing_extra(extra)


def missing_extra(extra: Extra) -> ExtraMissing:
    """Return the error for an extra that is not installed."""
    return ExtraMissing(f"the extra {extra} is not installed", advice=f"install it: {install_command(extra)}")


def install_command(extra: Extra) -> str:
    """Return the command that adds an extra to this installation, whichever program made it.

    The package itself is there already, so that nothing of its name is fetched. uv's environments have no pip.
    """
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") is not None else f"uv pip install --python {python}"
    return f"{pip} '{PACKAGE}[{extra}]'"


def missing_subject(error: ModuleNotFoundError) -> ExtraMissing | None:
    """Return the error for a subject whose folder is not there; None for any other module, also within a subject."""
    folder, _, name = (error.name or "").rpartition(".")
    if _SUBJECTS not in {folder, error.name}:
        return None
    return ExtraMissing(f"the part {name} of {PACKAGE} is missing here", advice=f"install {PACKAGE} again")


def or_absent(make: Callable[[], _T], stand_in: Callable[[ExtraMissing], _T]) -> _T:
    """Return what `make` returns, or what stands in for it where the subject that it imports is not there."""
    try:
        return make()
    except ModuleNotFoundError as error:
        if (missing := missing_subject(error)) is None:
            raise
        return stand_in(missing)


@contextmanager
def needed_subject() -> Iterator[None]:
    """Raise `ExtraMissing` where the block imports of a subject that is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (missing := missing_subject(error)) is None:
            raise
        raise missing from error
