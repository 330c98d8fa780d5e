"""`agent search` and `agent index`: what a person and a program are told, and that nothing of the repo is run."""

import argparse
import io
import json
import shutil
from pathlib import Path

import pytest

from agent_workbench.api.code_search import Searched
from agent_workbench.cli.main import execute
from agent_workbench.cli.verbs.search import _reasons, _show
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, IndexStatus, Signal, SignalKind
from tests.documented_json import assert_documented
from tests.e2e.machine import Machine

TAX = "def tax(price):\n    return price * 19 // 100\n"
SHOP = "class Shelf:\n    def put_on_shelf(self, goods):\n        self.goods = goods\n"
FILES = {
    "shop/tax.py": TAX,
    "shop/shelf.py": SHOP,
    "memory/plans/notes.txt": "tax tax tax\n",
    "README.md": "# A shop\n",
}
TRACE = 'Traceback (most recent call last):\n  File "/opt/shop/shelf.py", line 3, in put_on_shelf\n'


@pytest.fixture
def repo(machine: Machine) -> Path:
    return machine.new_repo("shop", FILES)


def test_a_program_reads_places_and_scores_with_tabs_between(machine: Machine, repo: Path) -> None:
    done = machine.agent("search", "tax", "price", cwd=repo)
    assert (done.code, done.err) == (0, "")
    place, symbol, score = done.out.splitlines()[0].split("\t")
    assert (place, symbol) == ("shop/tax.py:1-2", "tax")
    assert float(score) > 0
    assert "memory/" not in done.out, "what the workbench writes is no code of the repo's"
    explained = machine.agent("search", "tax", "price", "--explain", "--limit", "1", cwd=repo)
    assert explained.out.startswith(done.out.splitlines()[0])
    assert "tax" in explained.out.splitlines()[1]
    assert not machine.git(repo, "status", "--porcelain")


def test_what_fits_nothing_has_an_exit_code_of_its_own(machine: Machine, repo: Path) -> None:
    done = machine.agent("search", "zebra", cwd=repo)
    assert (done.code, done.out) == (1, "")
    assert "nothing fits · 3 files" in done.err
    for words, told in (
        (["search", " "], "the query is empty"),
        (["search", "x", "--failing", "no"], "no cannot be"),
    ):
        assert told in machine.agent(*words, cwd=repo).err
    outside = machine.agent("search", "tax", cwd=machine.home)
    assert outside.code == 4
    assert "is not in a git repository" in outside.err


def test_a_pasted_stack_trace_and_a_failing_test_are_asked_with(
    machine: Machine, repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(repo)
    monkeypatch.setattr("sys.stdin", io.StringIO(TRACE))
    assert execute(["search", "-", "--json", "--limit", "1"]) == 0
    assert_documented(["search", "-", "--json"], printed := capsys.readouterr().out)
    (found,) = json.loads(printed)["results"]
    assert found["path"] == "shop/shelf.py"
    assert found["first_line"] <= 3 <= found["last_line"]
    assert "put_on_shelf" in found["text"]
    (repo / "out.txt").write_text(TRACE)
    assert execute(["search", "goods", "--failing", "out.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["path"] == "shop/shelf.py"


def test_the_index_is_built_told_of_and_cleared(machine: Machine, repo: Path) -> None:
    before = json.loads(machine.agent("index", "status", "--json", cwd=repo).out)
    assert (before["index"]["files"], before["cache"]["blobs"]) == (0, 0)
    assert "none saved" in machine.agent("index", cwd=repo).out
    built = json.loads(machine.agent("index", "build", "--json", cwd=repo).out)
    assert built["index"]["files"] == 3
    assert built["cache"]["blobs"] == 3
    # So few files are no reason to save; they must not look as if they had never been indexed.
    assert "fewer than 50 files" in machine.agent("index", cwd=repo).out
    assert built["cache"]["folder"].startswith(machine.environ["XDG_CACHE_HOME"])
    assert json.loads(machine.agent("index", "clear", "--all", "--json", cwd=repo).out)["removed_bytes"] > 0
    assert json.loads(machine.agent("index", "status", "--json", cwd=repo).out)["cache"]["blobs"] == 0
    assert machine.agent("index", "build", cwd=machine.home).code == 4


def test_what_is_not_searched_and_what_is_not_kept_is_told(machine: Machine, repo: Path) -> None:
    (repo / "big.c").write_text("int zebra;\n" * 50_000)
    assert "left out: 1 file (too large" in machine.agent("search", "zebra", cwd=repo).err
    assert "left out: 1 file (too large" in machine.agent("index", cwd=repo).out
    cache = Path(json.loads(machine.agent("index", "status", "--json", cwd=repo).out)["cache"]["folder"])
    machine.agent("index", "clear", "--all", cwd=repo)
    shutil.rmtree(cache)
    cache.touch()
    built = machine.agent("index", "build", cwd=repo)
    assert (built.code, built.err.count("\n")) == (0, 1)
    assert f"the cache cannot be written at {cache}" in built.err


def test_reasons_are_bars_and_where_there_are_none_words() -> None:
    chunk = Chunk("a.py", 1, 2, "x", 1.0, why=("cart",), signals=(Signal(SignalKind.WORDS, 1.0, ("cart",)),))
    assert _reasons(chunk) == [f"    words     {'█' * 20} 100%  cart"]
    assert _reasons(Chunk("a.py", 1, 2, "x", 1.0, why=("cart", "tax"))) == ["    for cart, tax"]


def test_results_of_an_incomplete_index_are_shown_at_once_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    status = IndexStatus(done=900, total=20_000, files=900, chunks=2_000)
    searched = Searched((Chunk("a.py", 1, 2, "x", 1.0),), status)
    _show(CodeQuery("x"), searched, argparse.Namespace(json=False, explain=False))
    shown = capsys.readouterr()
    assert shown.out == "a.py:1-2\t\t1.00\n"
    assert "searched while indexing 900 of 20,000 files; the index is completed now" in shown.err
    _show(CodeQuery("x"), searched, argparse.Namespace(json=True, explain=False))
    assert json.loads(capsys.readouterr().out)["complete"] is False


def test_a_playbook_is_found_or_the_nearest_are_named(machine: Machine) -> None:
    plays = {
        f"{name}.yml": f"- name: {name}\n  hosts: web\n" for name in ("deploy-kuma", "restart-web", "users", "backup")
    }
    site = machine.new_repo("site", plays)
    found = machine.agent("search", "--playbook", "deploy", "kuma", cwd=site)
    assert (found.code, found.out) == (0, "deploy-kuma.yml  by its name\n")
    none = machine.agent("search", "--playbook", "make coffee", cwd=site)
    assert (none.code, len(none.out.splitlines())) == (1, 3)
    assert "no playbook fits" in none.err
    told = json.loads(machine.agent("search", "--playbook", "--json", "make coffee", cwd=site).out)
    assert (told["found"], len(told["nearest"])) == (None, 3)
