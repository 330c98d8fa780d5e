"""Procrastinate inside of the queue's transactions."""

import procrastinate
from procrastinate.schema import SchemaManager

from agent_workbench.adapters.database.migrations import migrations


def test_the_schema_is_that_of_the_installed_procrastinate() -> None:
    """A newer Procrastinate needs its migrations as a further file of the schema; this one stays as it was applied."""
    (ours,) = [each.text for each in migrations() if each.name == "procrastinate"]
    assert ours == SchemaManager.get_schema(), f"Procrastinate is {procrastinate.__version__} now"
