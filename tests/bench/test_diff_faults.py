"""The generator damages as it says and leaves the truth alone; appliers are judged by what stands in the files."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench import diff_faults
from bench.faults import sources
from bench.faults.change import Change, FilePair, diff_of
from bench.faults.draft import read_draft
from bench.faults.judge import Verdict, judge, run, tallies, total
from bench.faults.kinds import KINDS, NAMES, PAIR, Case, Group, make_case
from bench.faults.oracle import results
from bench.faults.report import as_json, each, table
from bench.patch_peers import Adapter, Attempt, programs

BODY = [f"    value_{n} = compute({n})  " if n % 5 == 0 else f"    value_{n} = compute({n})" for n in range(40)]
BODY[14] = ""
REFUSED = json.dumps({"id": "1", "post": None, "repaired": [], "reason": "no"})
REFUSING = f"import sys\nfor line in sys.stdin: print({REFUSED!r}, flush=True)"


def edited(*changed: int) -> str:
    return "\n".join(f"{line} + 1" if n in changed else line for n, line in enumerate(BODY)) + "\n"


INDENTED = Change(
    "indented", (FilePair("src/one.py", edited(), edited(12, 22, 38)), FilePair("two.py", edited(), edited(7)))
)
TABBED = INDENTED.mapped(lambda text: text.replace("    ", "\t"))
NEW = Change("new", (FilePair("new.py", None, edited()),))
CHANGES = (INDENTED, TABBED, NEW)


def case(name: str, change: Change = INDENTED, seed: int = 1) -> Case:
    found = make_case(change, name, seed)
    assert found is not None, name
    return found


@pytest.mark.parametrize("change", [INDENTED, TABBED, NEW], ids=lambda change: change.id)
@pytest.mark.parametrize("context", [1, 3, 12])
def test_a_diff_is_taken_apart_without_loss(change: Change, context: int) -> None:
    assert read_draft(diff_of(change, context)).text() == diff_of(change, context)


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_damages_and_leaves_the_truth_alone(name: str) -> None:
    made = [(change, found) for change in CHANGES if (found := make_case(change, name, 1))]
    assert made
    kind = next((kind for kind in KINDS if kind.name == name), None)
    for change, found in made:
        assert found == make_case(change, name, 1)
        assert (found.patch == diff_of(change)) == (name in {"nothing", "old lines are gone", "applied already"})
        if found.group is Group.UNFIT:
            assert found.post == found.pre
        elif kind is not None and kind.change is None:
            assert (found.pre, found.post) == (change.pre, change.post)


def test_what_is_done_to_the_files_is_done_to_both_sides() -> None:
    ended = case("LF diff, CRLF file")
    assert ended.pre == {path: (text or "").replace("\n", "\r\n") for path, text in INDENTED.pre.items()}
    assert ended.post == {path: (text or "").replace("\n", "\r\n") for path, text in INDENTED.post.items()}
    cut = case("no newline at the end, no marker")
    assert all(text and not text.endswith("\n") for text in (*cut.pre.values(), *cut.post.values()))
    assert [(text or "").count("\n") for text in cut.post.values()] == [39, 10]
    ended = case("no newline at the end, last line changed, no marker")
    assert [(text or "").count("\n") for text in ended.pre.values()] == [38, 7]
    decoyed = case("almost equal lines where it points")
    assert (decoyed.pre["src/one.py"] or "").endswith(edited())
    assert (decoyed.post["src/one.py"] or "").endswith(edited(12, 22, 38))


def test_another_seed_damages_in_another_way() -> None:
    assert len({case("context line mistyped", seed=seed).patch for seed in range(5)}) > 1
    assert len({case(PAIR, seed=seed).id for seed in range(5)}) > 1


def test_numbers_are_spoiled() -> None:
    sound = read_draft(diff_of(INDENTED)).hunks()
    counted = read_headers(case("wrong counts").patch)
    assert all(found[1::2] != (hunk.old_count, hunk.new_count) for found, hunk in zip(counted, sound, strict=True))
    near = read_headers(case("wrong start, by 1 to 3").patch)
    assert all(1 <= abs(found[0] - hunk.old_start) <= 3 for found, hunk in zip(near, sound, strict=True))
    far = read_headers(case("wrong start, by 20 to 300").patch)
    assert all(20 <= abs(found[0] - hunk.old_start) <= 300 for found, hunk in zip(far, sound, strict=True))
    assert {found[0] for found in read_headers(case("wrong start, all 1").patch)} == {1}
    assert not read_headers(case("no numbers").patch)


def read_headers(patch: str) -> list[tuple[int, int, int, int]]:
    found = []
    for line in patch.split("\n"):
        if line.startswith("@@ -") and line[4].isdigit():
            old, new = (part[1:].split(",") for part in line.split(" ")[1:3])
            found.append((int(old[0]), int(old[1]), int(new[0]), int(new[1])))
    return found


def lost(name: str) -> int:
    """Return how many lines the first hunk of a damaged diff lacks."""
    return len(diff_of(INDENTED).split("@@")[2].split("\n")) - len(case(name).patch.split("@@")[2].split("\n"))


def test_context_is_lost() -> None:
    assert lost("context lost, 1 at the edges, counted") == 2
    assert lost("context lost, 2 at the edges, not counted") == 4
    assert lost("context lost, all before, counted") == 3
    assert "@@ -10,7 +10,7 @@" in case("context lost, all behind, not counted").patch
    assert "@@ -10,4 +10,4 @@" in case("context lost, all behind, counted").patch
    assert lost("blank context line lost") == 1
    assert "@@ -13,4 +13,4 @@" in case("context lost, all before, counted").patch


def test_what_stands_in_front_of_hunks_is_spoiled() -> None:
    assert "diff --git" not in case("no diff --git lines").patch
    assert "--- src/one.py\n+++ src/one.py\n" in case("no a/ b/").patch
    assert "--- a/src/one.py\t" in case("times behind names").patch
    assert case("two sections for a file").patch.count("--- a/src/one.py") == 2
    starts = [header[0] for header in read_headers(case("hunks swapped").patch)]
    assert starts != sorted(starts)


def test_white_space_is_spoiled() -> None:
    assert not any(line != line.rstrip() for line in case("trailing space trimmed").patch.split("\n"))
    assert "\n     value" not in case("context without its space").patch
    assert "\n value_9 = " in case("dedented").patch
    assert "\n \tvalue" in case("spaces as tabs").patch
    assert "\t" not in case("tabs as spaces", TABBED).patch
    assert case("CRLF diff, LF file").patch.count("\r\n") == diff_of(INDENTED).count("\n")
    assert not case("no final newline of the diff").patch.endswith("\n")
    assert "\\ No newline" not in case("no newline at the end, no marker").patch


def test_white_space_that_would_be_lost_is_not_trimmed() -> None:
    change = Change("spaced", (FilePair("x.py", "a\nb \nc\n", "a\nB \nc\n"),))
    assert make_case(change, "trailing space trimmed", 1) is None


def test_dots_stand_for_context() -> None:
    found = case("dots for long context")
    assert "..." in found.patch
    assert found.patch.count("\n") < diff_of(INDENTED, 12).count("\n")


def test_the_oracle_knows_what_a_diff_can_mean() -> None:
    hunks = read_draft("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n").files[0].hunks
    assert results("a\nb\n", hunks) == {"a\nc"}
    assert results("a \nb\na\nb\n", hunks) == {"a\nc\na\nb", "a\nb\na\nc"}
    assert results("b\na\n", hunks) == set()
    marked = [replace(hunks[0], body=(" a", "-b", "\\ No newline at end of file", "+c"))]
    assert results("a\nb\na\nb", marked) == {"a\nb\na\nc"}
    assert results("b", marked) == set()


def test_a_diff_that_fits_twice_is_known_to_be_unclear() -> None:
    twice = case("old lines twice, no numbers")
    assert twice.unclear
    assert twice.post == twice.pre
    assert not case("no numbers").unclear


def test_files_that_a_diff_does_not_fit() -> None:
    assert len((case("old lines are gone").pre["src/one.py"] or "").split("\n")) in {41, 34}
    assert case("applied already").pre == INDENTED.post


def attempt(post: str | None, *, succeeded: bool) -> Verdict:
    asked = Case("id", "kind", Group.WHOLE, "", {"x": "a\n"}, {"x": "b\n"}, unclear=False)
    return judge(asked, Attempt({"x": post}, succeeded, 0.1))


def test_verdicts() -> None:
    assert attempt("b\n", succeeded=True) is Verdict.RIGHT
    assert attempt("a\n", succeeded=False) is Verdict.REFUSED
    assert attempt("c\n", succeeded=True) is Verdict.WRONG
    assert attempt("c\n", succeeded=False) is Verdict.HALF
    assert attempt(None, succeeded=True) is Verdict.WRONG
    assert attempt("b", succeeded=True) is Verdict.WRONG


def test_a_file_nobody_named_makes_it_wrong() -> None:
    asked = Case("id", "kind", Group.WHOLE, "", {"x": "a\n"}, {"x": "b\n"}, unclear=False)
    assert judge(asked, Attempt({"x": "b\n", "y": "new"}, True, 0.1)) is Verdict.WRONG


def test_peers_apply_what_is_sound() -> None:
    assert programs()
    for change in CHANGES:
        assert {outcome.verdict for outcome in run([case("nothing", change)], programs())} == {Verdict.RIGHT}


def test_a_peer_that_leaves_files_half_changed_is_found() -> None:
    patch = next((program for program in programs() if program.words[0] == "patch"), None)
    if patch is None:
        pytest.skip("machine lacks: patch")
    pre = {**INDENTED.pre, "two.py": "other\n"}
    asked = Case("id", "kind", Group.UNFIT, diff_of(INDENTED), pre, pre, unclear=False)
    ((found),) = run([asked], [patch])
    assert found.verdict is Verdict.HALF
    assert total(tallies([found]), patch.name).wrong == 1


def test_an_adapter_is_asked_and_its_answers_are_counted() -> None:
    with Adapter([sys.executable, "-c", REFUSING], "no") as refusing:
        outcomes = list(run([case("nothing"), case("applied already")], [refusing]))
    assert [outcome.verdict for outcome in outcomes] == [Verdict.REFUSED, Verdict.RIGHT]
    assert outcomes[0].attempt.said == "no"
    assert "nothing" in table(outcomes)
    assert json.loads(as_json(outcomes))["no"]["nothing"]["refused"] == 1
    assert diff_of(INDENTED) in "\n".join(each(outcomes, frozenset({Verdict.REFUSED})))


@pytest.mark.parametrize(("program", "said"), [("print('nonsense')", "answered b'nonsense"), ("pass", "ended without")])
def test_an_adapter_that_fails_is_told(program: str, said: str) -> None:
    with Adapter([sys.executable, "-c", program]) as broken, pytest.raises(RuntimeError, match=said):
        broken.apply("", {}, [])


def test_the_difference_to_what_is_right_is_shown() -> None:
    asked = case("nothing")
    wrong = Attempt({**asked.post, "two.py": "other\n"}, True, 0.1)
    ((outcome),) = run([asked], [Fixed("fixed", wrong)])
    told = "\n".join(each([outcome], frozenset({Verdict.WRONG})))
    assert "+other" in told


class Fixed:
    """Answers always the same."""

    def __init__(self, name: str, answer: Attempt) -> None:
        self.name = name
        self._answer = answer

    def apply(self, patch: str, pre: object, paths: object) -> Attempt:
        return self._answer


def commit(folder: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        (folder / path).write_text(text)
    author = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*author, "commit", "--quiet", "-m", "texts")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


def test_changes_come_from_a_history(tmp_path: Path) -> None:
    commit(tmp_path, {"x.py": "a\nb\nc\n", "binary.bin": "\0"})
    commit(tmp_path, {"x.py": "a\nB\nc\n", "binary.bin": "\0\0"})
    found = sources.changes_of_repository(tmp_path, 10, seed=1)
    pairs = {(file.pre, file.post) for change in found for file in change.files}
    assert pairs == {("a\nb\nc\n", "a\nB\nc\n"), (None, "a\nb\nc\n")}
    assert found == sources.changes_of_repository(tmp_path, 10, seed=1)
    assert len(sources.changes_of_repository(tmp_path, 1, seed=1)) == 1


def test_a_folder_without_history_is_told(tmp_path: Path) -> None:
    with pytest.raises(sources.SourceError, match="no git history"):
        sources.changes_of_repository(tmp_path, 1, seed=1)


def test_changes_come_from_two_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PACKAGES", (("thing", "1", "2"),))
    for version, text in (("1", "a\nb\n"), ("2", "a\nB\n")):
        with zipfile.ZipFile(tmp_path / f"thing-{version}.whl", "w") as wheel:
            wheel.writestr("thing/x.py", text)
            wheel.writestr(f"thing-{version}.dist-info/METADATA.txt", f"Version: {version}\n")
    found = sources.changes_of_packages(tmp_path, 10, seed=1)
    assert {file.path for change in found for file in change.files} == {"thing/x.py", "thing.dist-info/METADATA.txt"}


def test_an_unknown_kind_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff_faults.main(["--kinds", "nonsense"]) == 2
    assert "no such kind: nonsense" in capsys.readouterr().err


def test_it_runs_over_a_given_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tmp_path, {"x.py": edited()})
    commit(tmp_path, {"x.py": edited(20)})
    (tmp_path / "refusing.py").write_text(REFUSING)
    words = ["--repo", str(tmp_path), "--adapter", f"{sys.executable} {tmp_path / 'refusing.py'}", "--kinds", "fence"]
    assert diff_faults.main([*words, "--show-refused"]) == 0
    out = capsys.readouterr().out
    assert "refused by ours" in out
    assert "```" in out
    assert "plain fence" in out


def test_a_marker_is_taken_from_no_line() -> None:
    change = Change("open", (FilePair("x.py", "a\nb\nc\nd", "a\nb\nc\nD"),))
    for name in NAMES:
        found = make_case(change, name, 1)
        if found is not None and name.startswith("context l"):
            assert found.patch.count("\\ No newline") == 2, name


def test_the_oracle_gives_up_where_many_hunks_fit_many_places() -> None:
    hunks = read_draft(diff_of(INDENTED, 0)).files[0].hunks
    repeated = [replace(hunks[0], body=("-a", "+a")) for _ in range(20)]
    assert results("a\n" * 60, repeated) == {"\n".join("a" * 60)}
