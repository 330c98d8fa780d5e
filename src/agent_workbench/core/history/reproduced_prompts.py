"""What comes of making a session again: each prompt beside its record."""

from msgspec import Struct

from agent_workbench.core.events import PromptBuilt


class Difference(Struct, frozen=True):
    """Where it goes another way: what it is about, in which part of the prompt, and a short diff."""

    what: str
    part: str = ""
    diff: str = ""


class ReproducedPrompt(Struct, frozen=True):
    """Prompt `number` of a session, from 1, made again; `seq` is where its record stands in the journal.

    `compared` is False where the record holds nothing to compare with. `remark` says what else is to be known.
    """

    number: int
    seq: int
    built: PromptBuilt
    difference: Difference | None = None
    compared: bool = True
    remark: str = ""
