"""`agent index eval`: the repo's own past asks, and neither the checkout nor the cache is touched."""

import json
from pathlib import Path

from tests.e2e.machine import Machine, write_files

WORDS = ("apples", "pears", "plums", "grapes")


def fruit_repo(machine: Machine) -> Path:
    """Return a repo in which each of four modules was changed by a commit that says which fruit it is about."""
    modules = {f"shop/m{n}.py": f"def price_of_{word}():\n    return {n}\n" for n, word in enumerate(WORDS)}
    too_large = {"shop/data.sql": "price of apples, pears, plums, grapes\n" * 12_000}
    repo = machine.new_repo("fruit", {**modules, **too_large, "tests/test_m0.py": "assert True\n"})
    for number, word in enumerate(WORDS):
        path = f"shop/m{number}.py"
        write_files(repo, {path: f"{modules[path]}# {number}\n", "tests/test_m0.py": f"assert {number} + 1\n"})
        machine.git(repo, "commit", "--quiet", "--all", "--message", f"The price of {word} was wrong")
    write_files(repo, {"shop/m0.py": "half an edit\n"})
    return repo


def test_the_past_asks_for_the_files_it_changed(machine: Machine) -> None:
    repo = fruit_repo(machine)
    done = machine.agent("index", "eval", "--commits", "4", "--json", cwd=repo)
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["base"] == machine.git(repo, "rev-parse", "HEAD~4").strip()
    assert [each["questions"] for each in found["all"]] == [4, 4, 4]
    assert found["files"] == 5
    assert [each["method"] for each in found["all"]] == ["agent search", "plain BM25 of files", "counted words (rg -c)"]
    assert {each["recall"] for each in (*found["all"], *found["strict"])} == {1.0}
    assert found["all"][0]["reciprocal_rank"] == 1.0
    assert machine.git(repo, "status", "--porcelain").split() == ["M", "shop/m0.py"]
    assert (repo / "shop/m0.py").read_text() == "half an edit\n"
    table = machine.agent("index", "eval", "--commits", "4", cwd=repo).out
    assert "4 of 4 messages of past commits name no file they changed" in table
    assert len([line for line in table.splitlines() if " ms" in line]) == 3


def test_a_repo_without_a_past_is_refused(machine: Machine) -> None:
    done = machine.agent("index", "eval", cwd=machine.new_repo("new", {"a.py": "x = 1\n"}))
    assert done.code == 4
    assert "too few commits to measure with" in done.err
