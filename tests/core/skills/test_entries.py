"""Files that tools put into a skill's folder, told from what the skill brings."""

import pytest

from agent_workbench.core.skills import is_compiled


@pytest.mark.parametrize(
    ("folder", "name", "compiled"),
    [
        ("__pycache__", "run.cpython-311.pyc", True),
        ("__pycache__", "run.cpython-311.opt-2.pyc", True),
        ("__pycache__", "a\nb.cpython-311.pyc", True),
        ("__pycache__", "run.cpython-311.pyc\n", False),
        ("__pycache__", ".cpython-311.pyc", False),
        ("__pycache__", "run.pyc", False),
        ("__pycache__", "run.py", False),
        ("scripts", "run.cpython-311.pyc", False),
    ],
)
def test_a_file_is_compiled_where_python_writes_it_under_its_own_name(folder: str, name: str, compiled: bool) -> None:
    assert is_compiled(folder, name) == compiled
