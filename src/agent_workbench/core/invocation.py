"""Where and with what the workbench was started."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.ids import TaskId


class Place(Struct, frozen=True):
    """Where and with what a verb was started; `flags` are settings by dotted key, `session` is what names one.

    An unattended run does `tasks`, all that are ready when None; with `unconfined` also where no sandbox holds. The
    demo's answers are slowed down to `demo_tokens_per_second` (0: not), so that a person can read along.
    """

    folder: Path
    environ: Mapping[str, str]
    flags: Mapping[str, str]
    session: str = ""
    fresh: bool = False
    tasks: tuple[TaskId, ...] | None = None
    policy: Path | None = None
    unconfined: bool = False
    demo: bool = False
    demo_tokens_per_second: float = 0.0
