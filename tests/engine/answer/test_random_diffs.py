"""Diffs of a random model under the grammar apply exactly; `bench.edits` runs the same test on a larger scale."""

import pytest

from bench.edit_sources import odd_files
from bench.edit_walk import BrokenPromise, replay
from bench.edits import count, judge

pytestmark = pytest.mark.xdist_group("llama")
FILES = {"a.txt": b"a\nb\na\nc", "b.txt": b"x\r\n"}
HEAD = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n"


@pytest.mark.slow
async def test_no_answer_misses() -> None:
    counts = await count(odd_files(), lines=80, seeds=range(1000, 1030))
    assert counts.wrong == counts.refused_ended == 0, counts.reasons
    assert counts.exact >= 10
    assert counts.exact + counts.cut + counts.refused == 30


def test_the_judge_knows_right_from_wrong() -> None:
    right = {
        f"{HEAD}-b\n": b"a\na\nc",
        f"{HEAD} b\n-a\n+x\n": b"a\nb\nx\nc",
        f"{HEAD} c\n\\ No newline at end of file\n+d\n".replace(" c", "-c"): b"a\nb\na\nd\n",
    }
    for diff, after in right.items():
        assert replay(diff, FILES) == {"a.txt": after}
        assert judge(diff, FILES, ended=True) == ("exact", "changed")
    assert replay("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n x\n+y\n", FILES) == {"b.txt": b"x\r\ny\r\n"}
    moved = "rename from b.txt\nrename to c.txt\n"
    assert replay(f"{moved}@@ -1 +1 @@\n-x\n", FILES) == {"b.txt": None, "c.txt": b""}
    assert judge(moved, FILES, ended=True) == ("exact", "created, removed")
    for diff in (
        moved.replace("c.txt", "A.txt"),
        f"{HEAD}-a\n",
        f"{HEAD}-z\n",
        f"{HEAD}-c\n",
        f"{HEAD}-b\n" * 2,
        f"{HEAD}-b\n@@ -1 +1 @@\n a\n b\n+x\n",
    ):
        with pytest.raises(BrokenPromise):
            replay(diff, FILES)


def test_what_the_workbench_applies_and_may_not_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.edits._applied", lambda diff, contents: {"a.txt": b"something else"})
    assert judge(f"{HEAD}-b\n", FILES, ended=True)[0] == "wrong"
    assert judge(f"{HEAD}-a\n", FILES, ended=True)[0] == "wrong"


def test_an_answer_that_was_cut_counts_up_to_its_last_whole_line() -> None:
    assert judge(f"{HEAD}-b\n+x\n+half a li", FILES, ended=False) == ("cut", "changed")
    assert judge(f"{HEAD}-", FILES, ended=False)[0] == "refused"
    assert judge(f"{HEAD}-b\n-a\n-c\n\\ No newl", FILES, ended=False) == ("cut", "changed")
