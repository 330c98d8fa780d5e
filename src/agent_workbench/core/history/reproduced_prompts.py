"""Prompts of a recorded session, built again and compared with their records."""

from msgspec import Struct

from agent_workbench.core.events import PromptBuilt


class PromptDifference(Struct, frozen=True):
    """First difference between a rebuilt prompt and its record: the subject, the part, and a short diff."""

    what: str
    part: str = ""
    diff: str = ""


class ReproducedPrompt(Struct, frozen=True):
    """Rebuilt prompt `number` of a session, counted from 1; `seq` is the event of its record.

    `compared` is False where the record holds nothing to compare with. `remark` is a further note for the reader.
    """

    number: int
    seq: int
    built: PromptBuilt
    difference: PromptDifference | None = None
    compared: bool = True
    remark: str = ""
