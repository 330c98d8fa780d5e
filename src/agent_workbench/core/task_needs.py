"""Needs of a task from the machine that does it, and the kind of its work."""

from enum import StrEnum

from agent_workbench.core.recorded_value import RecordedValue


class Intent(StrEnum):
    """Kind of a task's work. `research` changes nothing."""

    INFRA = "infra"
    RESEARCH = "research"
    CODE = "code"


class Needs(RecordedValue, frozen=True):
    """What a machine must have: graphics memory in GiB, cores that are free, models that answer there, and tags."""

    gpu_vram_gb: float | None = None
    cores: int | None = None
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
