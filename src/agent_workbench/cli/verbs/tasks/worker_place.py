"""Flags of `agent worker` and the verbs below it that say which queue of which repository is meant."""

import argparse
import os
from pathlib import Path

from agent_workbench.cli.options import overrides
from agent_workbench.core.session_request import Invocation


def add_place_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags that say which queue of which repository is meant."""
    # A verb below `worker` must not overwrite what was said before its name.
    verb.add_argument("--project", metavar="NAME", default=argparse.SUPPRESS, help="queue tasks/queue/NAME")
    verb.add_argument("--repo", metavar="PATH", type=Path, default=argparse.SUPPRESS, help="repository to work in")
    verb.add_argument(
        "--queue", metavar="FOLDER", type=Path, default=argparse.SUPPRESS, help="folder of the projects' queues"
    )


def worker_invocation(options: argparse.Namespace) -> Invocation:
    """Return the invocation for the repository, policy and model that the options name."""
    folder = Path.cwd() / getattr(options, "repo", "")
    return Invocation(
        folder,
        os.environ,
        overrides(options),
        policy=getattr(options, "policy", None),
        unconfined=getattr(options, "unconfined", False),
    )
