import pytest

from agent_workbench.core.errors import JournalError
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.spec import ToolSpec, describe_unheld, read_spec_schema


@pytest.mark.parametrize("schema", ["00", "{", '{"type": 7}', "[" * 10_000])
def test_a_recorded_schema_that_cannot_be_read_is_named(schema: str) -> None:
    spec = ToolSpec("look\x1b[2J", "looks", Permission.READ, schema, "mcp:far")
    with pytest.raises(JournalError, match="the recorded schema of the tool look"):
        read_spec_schema(spec)
    assert "the recorded schema of the tool look" in describe_unheld([spec])[0]
