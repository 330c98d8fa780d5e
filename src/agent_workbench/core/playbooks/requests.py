"""Request for a run of a playbook, as a gate shows it and a journal keeps it."""

from agent_workbench.core.recorded_value import RecordedValue


class PlaybookRequest(RecordedValue, frozen=True):
    """A run that is asked for. `inventory` is a file of the repository, or host names that end in a comma.

    `extra_vars` is one JSON object. `check`: nothing is to be changed, and differences are shown.
    """

    playbook: str
    inventory: str = ""
    limit: str = ""
    tags: str = ""
    extra_vars: str = ""
    check: bool = True

    @property
    def text(self) -> str:
        """The request on one line."""
        parts = (
            self.playbook,
            f"on {self.inventory}" if self.inventory else "on the default inventory",
            f"limit {self.limit}" if self.limit else "",
            f"tags {self.tags}" if self.tags else "",
            f"with {self.extra_vars}" if self.extra_vars else "",
            "(check mode)" if self.check else "",
        )
        return " ".join(filter(None, parts))

    @property
    def inventory_path(self) -> str:
        """Path of the inventory, empty if it is no file."""
        return "" if self.inventory.endswith(",") else self.inventory
