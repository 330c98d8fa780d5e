import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import JournalError
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.spec import ToolSpec, describe_unheld, read_spec_schema


@pytest.mark.parametrize("schema", ["00", "{", '{"type": 7}', "[" * 10_000])
def test_a_recorded_schema_that_cannot_be_read_is_named(schema: str) -> None:
    spec = ToolSpec("look\x1b[2J", "looks", Permission.READ, schema, "mcp:far")
    with pytest.raises(JournalError, match="the recorded schema of the tool look"):
        read_spec_schema(spec)
    assert "the recorded schema of the tool look" in describe_unheld([spec])[0]


def test_the_digest_of_a_spec_depends_on_the_server_and_not_on_an_empty_one() -> None:
    spec = ToolSpec("look", "looks", Permission.EXTERNAL, "{}", "mcp:far", ("read-only",))
    # Rules that were kept before specs named their server still count.
    assert spec.digest == "7295be4fe53b6652"
    digests = {replace(spec, server=server).digest for server in ("", "uvx a (entry 1)", "uvx a (entry 2)")}
    assert len(digests) == 3
