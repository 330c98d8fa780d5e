"""Downloads of the judges: a machine without a network skips them, any other failure fails."""

import re
import subprocess

import pytest

FETCH_SECONDS = 300
# What pip and npm say where they reach nothing. A package that is missing or broken says something else.
_UNREACHED = re.compile(
    r"Failed to establish a new connection|Connection refused|Network is unreachable|Name or service not known"
    r"|Temporary failure in name resolution|No route to host|Cannot connect to proxy|ConnectTimeout|ConnectionReset"
    r"|\b(?:ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH)\b"
)


def fetch(command: list[str], needs: str) -> None:
    """Run a download; skip the test if the machine does not reach what it `needs`, fail it for any other reason."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    if done.returncode and _UNREACHED.search(done.stderr):
        pytest.skip(f"machine lacks: {needs} ({done.stderr.strip()[-300:]})")
    assert done.returncode == 0, f"{' '.join(command[:4])} failed, and not for want of a network:\n{done.stderr}"
