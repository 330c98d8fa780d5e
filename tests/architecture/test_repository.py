"""Nothing in the repository tells of the machine on which it was written."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tests.architecture.source_tree import ROOT, expect_none

# Spelled apart, or this file would find itself.
PLACES = re.compile(r"(?<![\w.~*-])/" + r"(?:work|root|opt/pypi[\w-]*)/|\.py" + r"env/versions|file:" + r"///\w")
PUBLIC_HOSTS = {"pypi.org", "files.pythonhosted.org", "localhost", "127.0.0.1", "", None}


def _tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def _hosts_of_this_machine() -> set[str]:
    """Return the hosts from which this machine, unlike others, fetches packages."""
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    environment = " ".join(value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_")))
    addresses = re.findall(r"\w+://[^\s'\"]+", f"{settings.stdout} {environment}")
    return {host for address in addresses if (host := urlsplit(address).hostname) and host not in PUBLIC_HOSTS}


def test_no_file_names_this_machine() -> None:
    hosts = _hosts_of_this_machine()
    found = []
    for path in _tracked_files():
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in PLACES.finditer(text)]
        found += [f"{path.relative_to(ROOT)}: {host}" for host in hosts if host in text]
    expect_none(found)
