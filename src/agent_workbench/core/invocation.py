"""Invocation of the workbench: the folder, environment and flags it was started with."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Invocation(Struct, frozen=True):
    """Folder, environment and flags; `flags` are settings by dotted key and count more than those of files.

    `policy` is a file with approvals and limits. `unconfined`: an unattended run goes on where no sandbox holds.
    `demo`: the model's answers come from the demo's script, at `demo_tokens_per_second` (0: at once).
    """

    folder: Path
    environ: Mapping[str, str]
    flags: Mapping[str, str]
    policy: Path | None = None
    unconfined: bool = False
    demo: bool = False
    demo_tokens_per_second: float = 0.0
