"""What all sessions of a process share: one server for each model file, one code search."""

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when the first session needs them
    from agent_workbench.adapters.llama_cpp.shared import SharedModels
    from agent_workbench.adapters.retrieval.shared import SharedRetrievers


class House:
    """Keeps what is shared as long as a session has it.

    All else is each session's own: journal, workspace, ports. Those meet at locks on files, as sessions of two
    processes do: a journal has one writer, a task one workspace, plan and notes are changed one after the other.
    """

    @cached_property
    def models(self) -> "SharedModels":
        """The models that have a server of ours."""
        from agent_workbench.adapters.llama_cpp.shared import SharedModels

        return SharedModels()

    @cached_property
    def retrievers(self) -> "SharedRetrievers":
        """The code searches."""
        from agent_workbench.adapters.retrieval.shared import SharedRetrievers

        return SharedRetrievers()
