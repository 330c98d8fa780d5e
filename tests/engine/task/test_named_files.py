"""Which files a task names outside of its text."""

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import PathScope, Task
from agent_workbench.engine.task.first_search import named_files


def test_files_that_may_be_written_and_files_of_the_checks_are_named() -> None:
    task = Task(
        TaskId("T-1"),
        "Sum the cart",
        accept_tests=("python -m pytest -q 'tests/test_cart.py::test_sum'", "CONFIG=ci.toml make check"),
        scope=PathScope(("src/cart.py", "src/**", "docs/[a-z].md")),
    )
    named = named_files(task)
    assert named[0] == "src/cart.py"
    assert {"tests/test_cart.py", "ci.toml"} <= set(named)
    assert not {"src/**", "docs/[a-z].md", "tests/test_cart.py::test_sum"} & set(named)
