"""Agents are compared on tasks of public sets: what is read, counted, graded and said of them."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.__main__ import main
from bench.tasks.agents import Attempt, Change, Conditions, Peer, read_journal
from bench.tasks.bed import Bed, Check, Ended, run_program
from bench.tasks.cases import Clone, TaskCase
from bench.tasks.proxy import CountingProxy, Exchange, looped_chars
from bench.tasks.results import LOOP, NO_EDIT, TIME, WRONG_EDIT, Row, Store, mcnemar, reasons, summary, wilson
from bench.tasks.selection import is_possible, possible_cases, read_cases, select
from bench.tasks.table import table
from tests.adapters.git.user import GIT_CONFIG
from tests.e2e.serving import listening, saying
from tests.fakes.faulty_server import END, FaultyServer, as_json, delta, event, stream

WRONG, RIGHT = "def half(n):\n    return n // 3\n", "def half(n):\n    return n // 2\n"
TEST = """import pytest
from load_testdata import load_json_testcases

if pytest.use_correct:
    from correct_python_programs.half import half
else:
    from python_programs.half import half


@pytest.mark.parametrize("given,wanted", load_json_testcases(half.__name__))
def test_half(given, wanted):
    assert half(*given) == wanted
"""
LOADER = """import json
from pathlib import Path


def load_json_testcases(name):
    return [json.loads(line) for line in (Path(__file__).parent / f"../json_testcases/{name}.json").open()]
"""
QUIXBUGS = {
    "python_programs/half.py": WRONG,
    "python_programs/node.py": "no = 'cases'\n",
    "correct_python_programs/half.py": RIGHT,
    "python_testcases/test_half.py": TEST,
    "python_testcases/load_testdata.py": LOADER,
    "json_testcases/half.json": "[[4], 2]\n[[10], 5]\n",
}
ENDED = Ended(0, "", 1.0, timed_out=False)


def git(folder: Path, *arguments: str) -> None:
    environment = {"HOME": str(folder.parent), "PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"}
    (folder.parent / ".gitconfig").write_text(GIT_CONFIG)
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def commit(folder: Path, files: dict[str, str], message: str = "Begin") -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", message)


@pytest.fixture
def quixbugs(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    commit(folder, QUIXBUGS)
    return folder


def one_case(folder: Path) -> TaskCase:
    [case] = read_cases(f"quixbugs:{folder}")[0]
    return case


def test_a_program_comes_without_its_solution_and_from_a_bare_clone_too(quixbugs: Path, tmp_path: Path) -> None:
    case = one_case(quixbugs)
    assert sorted(case.files) == [
        ".gitignore",
        "json_testcases/half.json",
        "python_programs/half.py",
        "python_testcases/load_testdata.py",
        "python_testcases/test_half.py",
    ]
    assert b"use_correct" not in case.files["python_testcases/test_half.py"]
    assert not any(b"// 2" in text for text in case.files.values())
    git(tmp_path / "set", "clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    assert one_case(tmp_path / "bare") == case


def exercism(folder: Path, status: str = "active") -> None:
    at = "exercises/practice/two-fer/"
    files = {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": [".meta/example.py"]}
    commit(
        folder,
        {
            "config.json": json.dumps({"exercises": {"practice": [{"slug": "two-fer", "status": status}]}}),
            f"{at}.meta/config.json": json.dumps({"files": files}),
            f"{at}.meta/example.py": "def two_fer():\n    return 2\n",
            f"{at}.docs/instructions.md": "Say two.\n",
            f"{at}.docs/instructions.append.md": "And for.\n",
            f"{at}.docs/hints.md": "It is 2.\n",
            f"{at}two_fer.py": "def two_fer():\n    pass\n",
            f"{at}two_fer_test.py": "from two_fer import two_fer\n\n\ndef test():\n    assert two_fer() == 2\n",
        },
    )


@pytest.mark.slow
def test_an_exercise_is_told_by_its_instructions_without_hints(tmp_path: Path) -> None:
    exercism(tmp_path / "track")
    [case] = read_cases(f"exercism:{tmp_path / 'track'}")[0]
    assert case.words.startswith("Say two.\n\nAnd for.\n\nImplement this in two_fer.py")
    assert "It is 2" not in case.words
    assert sorted(case.files) == [".gitignore", "two_fer.py", "two_fer_test.py"]
    assert is_possible(case, Check())


def test_a_deprecated_exercise_is_none(tmp_path: Path) -> None:
    exercism(tmp_path / "track", status="deprecated")
    assert read_cases(f"exercism:{tmp_path / 'track'}")[0] == []


@pytest.mark.slow
def test_commits_with_a_test_are_tasks_if_their_tests_decide(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    commit(folder, {"src/half.py": WRONG, "tests/test_one.py": "def test_one():\n    assert True\n"})
    test = "from half import half\n\n\ndef test_half():\n    assert half(4) == 2\n"
    commit(folder, {"src/half.py": RIGHT, "tests/test_half.py": test}, "Halve by two\n\nSigned-off-by: A <a@b.c>")
    passes_anyway = "def test_two():\n    assert True\n"
    commit(folder, {"src/half.py": RIGHT + "\n", "tests/test_two.py": passes_anyway}, "Add a line")
    commit(folder, {"README": "No test.\n"}, "Tell more")
    cases = read_cases(f"history:{folder}")[0]
    assert sorted(case.words for case in cases) == ["Add a line", "Halve by two"]
    known = tmp_path / "out" / "possible.json"
    [case] = possible_cases(cases, Check(), known)
    assert case.words == "Halve by two"
    assert case.files["src/half.py"].decode() == WRONG
    assert case.files["tests/test_half.py"].decode() == test
    assert not case.edits
    assert sorted(json.loads(known.read_text()).values()) == [False, True]


def test_a_sample_depends_on_names_and_leaves_out_another(quixbugs: Path) -> None:
    cases = [replace(one_case(quixbugs), id=f"t{number:02}") for number in range(30)]
    tuned = select(cases, 10, 1, (), ())
    assert tuned == select(cases, 10, 1, (), ())
    told = select(cases, 20, 2, [(10, 1)], ())
    assert len(told) == 20
    assert not {case.id for case in tuned} & {case.id for case in told}
    with pytest.raises(SystemExit, match="no such task: t99"):
        select(cases, 0, 0, (), ["t99"])


@pytest.mark.slow
def test_a_change_that_replaces_its_judge_does_not_pass(quixbugs: Path, tmp_path: Path) -> None:
    bed, check = Bed(tmp_path / "bed", one_case(quixbugs)), Check()
    (bed.repo / "python_testcases/test_half.py").write_text("def test_half():\n    pass\n")
    (bed.repo / "conftest.py").write_text("import os\nos._exit(0)\n")
    cheated = bed.snapshot()
    assert bed.touched_tests(cheated) == ["conftest.py", "python_testcases/test_half.py"]
    assert not bed.grade(cheated, check)
    (bed.repo / "python_programs/half.py").write_text(RIGHT)
    assert bed.grade(bed.snapshot(), check)
    (bed.repo / "conftest.py").unlink()
    assert bed.places(bed.snapshot()) == bed.places(bed.solution) == {("python_programs/half.py", "def half(n):")}


def test_what_a_program_leaves_behind_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = (
        "import pathlib, subprocess\n"
        "left = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"pathlib.Path({str(mark)!r}).write_text(str(left.pid))\n"
    )
    run_program((sys.executable, "-c", script), tmp_path, {"PATH": "/usr/bin:/bin"}, 30)
    status = Path(f"/proc/{mark.read_text()}/status")
    assert not status.exists() or "(zombie)" in status.read_text()


def timings(prompt: int, cached: int, written: int) -> dict[str, object]:
    return {"timings": {"prompt_n": prompt, "cache_n": cached, "predicted_n": written}}


def ask(url: str, words: Sequence[str], *, streamed: bool) -> None:
    messages = [{"role": "user", "content": each} for each in words]
    body = json.dumps({"messages": messages, "stream": streamed, "temperature": 1}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        answer.read()


def test_requests_and_tokens_are_counted() -> None:
    whole = {"choices": [{"message": {"content": "four"}, "finish_reason": "stop"}], **timings(50, 50, 4)}
    server = FaultyServer().chat(
        stream(delta("one "), delta("two", "stop"), event({"choices": [], **timings(60, 40, 2)}), END), as_json(whole)
    )
    with listening(server) as url, CountingProxy(url, sampling={"temperature": 0}) as proxy:
        ask(proxy.url, ["a" * 100], streamed=True)
        ask(proxy.url, ["a" * 100, "b" * 100], streamed=False)
        first, second = proxy.take()
        assert proxy.take() == []
    assert (first.answer, first.prompt, first.read, first.written, first.finish) == ("one two", 100, 60, 2, "stop")
    assert (second.answer, second.prompt, second.read, second.written) == ("four", 100, 50, 4)
    assert first.again == 0
    assert second.again == 0  # about half of the prompt is known, and all of that came from the cache
    assert first.sampling["temperature"] == 0


@pytest.mark.parametrize(
    ("answer", "loops"),
    [
        ("x = 1\n" * 100, 588),
        ("Some text.\n" + "assert area(1, 2) == 2\nassert area(3, 4) == 12\n" * 12 + "assert ar", 517),
        ("\n".join(f"assert area({n}, 2) == {2 * n}" for n in range(100)), 0),
        ("| a | b |\n|---|---|\n" * 3, 0),
        ("-" * 1000, 0),
        ("", 0),
    ],
)
def test_a_loop_is_told_from_data(answer: str, loops: int) -> None:
    assert looped_chars(answer) == loops


def test_why_an_attempt_failed() -> None:
    assert reasons(Attempt(ENDED)) == (NO_EDIT,)
    looping = Exchange(answer="def f(): pass\n" * 50)
    assert reasons(Attempt(ENDED, [Change(1, "t")], [looping])) == (LOOP, WRONG_EDIT)
    assert reasons(Attempt(Ended(-15, "", 9.0, timed_out=True))) == (TIME,)


def test_a_journal_says_which_answers_changed_something(tmp_path: Path) -> None:
    events: list[tuple[str, dict[str, object]]] = [
        ("model_interrupted", {}),
        ("model_answered", {}),
        ("patch_applied", {"tree": "t1"}),
        ("task_rolled_back", {}),
        ("task_finished", {"status": "failed", "reason": "too many steps"}),
    ]
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(json.dumps({"kind": kind, "body": body}) + "\n" for kind, body in events) + '{"torn')
    attempt = Attempt(ENDED)
    read_journal(journal, attempt)
    assert attempt.changes == [Change(2, "t1")]
    assert (attempt.answers, attempt.malformed, attempt.kept) == (2, 1, False)
    assert attempt.end == "failed: too many steps"


def test_intervals_and_pairs() -> None:
    assert wilson(0, 0) == (0, 1)
    assert [round(each, 4) for each in wilson(15, 50)] == [0.191, 0.4375]
    assert wilson(10, 10)[1] == pytest.approx(1)
    assert mcnemar(0, 0) == 1
    assert mcnemar(1, 9) == pytest.approx(0.021484, abs=1e-6)
    assert mcnemar(5, 5) == 1


def row(agent: str, task: str, *, solved: bool) -> Row:
    return Row("r", "s", task, agent, "1", "m", "alike", solved, solved, solved, () if solved else (NO_EDIT,), read=9)


def test_agents_are_paired_on_the_tasks_that_both_did() -> None:
    rows = [row("a", "1", solved=True), row("a", "2", solved=True), row("a", "3", solved=False)]
    rows += [row("b", "1", solved=True), row("b", "2", solved=False)]
    found = json.loads(json.dumps(summary(rows)))
    [pair] = found["pairs"]
    assert (pair["agents"], pair["tasks"]) == (["a", "b"], 2)
    assert pair["solved"] == {"only_first": 1, "only_second": 0, "mcnemar_p": 1}
    assert pair["both_solved"]["median_read"] == [9, 9]
    assert "1 no edit" in table(rows)


def test_a_torn_row_is_done_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "rows.jsonl")
    store.add(row("a", "1", solved=True))
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"run":')
    assert len(store.rows()) == 1
    store.add(row("a", "2", solved=True))
    assert [each.task for each in store.rows()] == ["1", "2"]


class Scribe(Peer):
    """A peer that writes the two programs, each after an answer, and asks for a summary between them."""

    beside = ("Sum up",)

    def version(self) -> str:
        return "1"

    def attempt(self, bed: Bed, proxy: CountingProxy, conditions: Conditions) -> Attempt:
        script = (
            "import json, pathlib, urllib.request\n"
            "def ask(words):\n"
            f"    request = urllib.request.Request({proxy.url!r} + '/v1/chat/completions',\n"
            "        json.dumps({'messages': [{'role': 'user', 'content': words}]}).encode())\n"
            "    urllib.request.urlopen(request).read()\n"
            "program = pathlib.Path('python_programs/half.py')\n"
            f"ask('Do it'); program.write_text({WRONG + '# changed'!r}); ask('Sum up')\n"
            f"ask('Again'); program.write_text({RIGHT!r})\n"
        )
        return self._observed([sys.executable, "-c", script], bed, proxy, conditions, {})


@pytest.mark.slow
def test_the_changes_of_a_peer_are_seen_between_its_requests(quixbugs: Path, tmp_path: Path) -> None:
    server = FaultyServer().chat(*(as_json({"choices": []}) for _ in range(3)))
    bed = Bed(tmp_path / "bed", one_case(quixbugs))
    with listening(server) as url, CountingProxy(url) as proxy:
        attempt = Scribe("scribe", Path(sys.executable)).attempt(bed, proxy, Conditions(Check()))
    assert attempt.ended.code == 0, attempt.ended.output
    assert [change.answer for change in attempt.changes] == [1, 2]
    assert (attempt.answers, len(attempt.exchanges)) == (2, 3)
    assert [bed.grade(change.tree, Check()) for change in attempt.changes] == [False, True]


@pytest.mark.slow
def test_the_workbench_does_a_task_which_is_not_done_again(
    quixbugs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = "--- a/python_programs/half.py\n+++ b/python_programs/half.py\n@@\n def half(n):\n"
    diff = f"Thought: Two.\nAction: write_diff\n{place}-    return n // 3\n+    return n // 2\n"
    server = saying([diff, 'Thought: Done.\nAction: finish\n{"summary": "Halve"}'])
    out = tmp_path / "out"
    words = ["tasks", "--source", f"quixbugs:{quixbugs}", "--agents", "ours", "--out", str(out), "--json"]
    with listening(server) as url:
        assert main([*words, "--url", url]) == 0
        first = json.loads(capsys.readouterr().out)
        assert main([*words, "--url", url]) == 0
        said = capsys.readouterr()
    assert first["agents"]["ours"]["first"]["number"] == 1
    assert json.loads(said.out) == first
    assert said.err == ""
    [done] = Store(out / "rows.jsonl").rows()
    assert (done.passed, done.answers_at, done.right_function, done.touched) == ((True,), (1,), True, ())
    assert (done.shown, done.requests >= 1) == (True, True)


def test_a_prompt_shows_what_has_to_change_only_with_the_lines_around_it(quixbugs: Path, tmp_path: Path) -> None:
    bed = Bed(tmp_path / "bed", one_case(quixbugs))
    assert bed.stands_in("Rewrite half.\n```\ndef half(n):\n    return n // 3\n```")
    assert not bed.stands_in("def half(n):\n    ...\n    return n // 3\n")
    assert not bed.stands_in("the program half")


def test_a_source_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="SET is one of quixbugs, exercism, polyglot, history"):
        read_cases("quixbug:/nowhere")
    with pytest.raises(SystemExit, match="git rev-parse failed"):
        Clone(tmp_path)
