from agent_workbench.core.errors import ExitCode
from tests.docs.tables import table_rows


def test_the_table_lists_every_exit_code() -> None:
    rows = table_rows("docs/reference/exit-codes.md", "code")
    assert [(row[0], row[1]) for row in rows] == [(str(int(code)), code.name.lower()) for code in ExitCode]
    assert all(row[2] for row in rows)
