"""Printing of `agent worker status`."""

import argparse

from agent_workbench.core.errors import UsageError
from agent_workbench.core.invocation import Invocation


async def print_status(invocation: Invocation, options: argparse.Namespace) -> int:
    """Print what runs, waits and is parked; return the exit code."""
    raise UsageError("not available yet")
