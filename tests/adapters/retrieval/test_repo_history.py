"""The past of a repo: read bit by bit, kept, never trusted when it is broken."""

import gzip
import json
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval import commit_index as counted_commits
from agent_workbench.adapters.retrieval.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.folder_histories import RepoHistory, load_commits
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.ranking.tokens import count_stems
from tests.fakes.folder_workspace import FolderWorkspace


def commit(number: int, message: str, *paths: str) -> PastCommit:
    return PastCommit(CommitId(f"{number:040}"), message, paths)


OLD = commit(1, "Read the header once", "src/header.py")
NEW = commit(2, "Close the socket\n\nIt leaked.\n\nSigned-off-by: Header Person <h@example.invalid>", "src/socket.py")


class Sources(FolderWorkspace):
    """A folder with commits, newest first; `asked` is what was asked for."""

    def __init__(self, root: Path, *commits: PastCommit) -> None:
        super().__init__(root)
        self.commits = commits
        self.asked: list[tuple[int, str]] = []

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        self.asked.append((limit, until))
        ids = [str(each.id) for each in self.commits]
        if until and until not in ids:
            return ()
        return self.commits[: ids.index(until)][:limit] if until else self.commits[:limit]


def score(commit_index: CommitIndex | None, path: str, words: str) -> float:
    assert commit_index is not None
    return float(commit_index.titles(tuple(count_stems(words)))[commit_index.paths.index(path)])


async def test_only_what_is_new_is_read_and_it_is_kept(tmp_path: Path) -> None:
    file, sources = tmp_path / "kept" / "past.json.gz", Sources(tmp_path, OLD)
    history = RepoHistory(file)
    assert history.commit_index is None
    await history.update(sources)
    sources.commits = (NEW, OLD)
    again = RepoHistory(file)
    await again.update(sources)
    assert sources.asked[-1][1] == str(OLD.id)
    assert again.commit_index is not None
    assert list(again.commit_index.ids) == [NEW.id, OLD.id]
    held = again.commit_index
    await again.update(sources)
    assert again.commit_index is held


async def test_a_history_that_was_rewritten_is_read_anew(tmp_path: Path) -> None:
    history, sources = RepoHistory(tmp_path / "past.json.gz"), Sources(tmp_path, OLD)
    await history.update(sources)
    sources.commits = (NEW,)
    await history.update(sources)
    assert history.commit_index is not None
    assert list(history.commit_index.ids) == [NEW.id]


async def test_what_is_kept_is_what_was_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept" / "past.json.gz"
    many = commit(3, "Move the socket everywhere", *(f"src/{number}.py" for number in range(30)))
    other = commit(4, "Read the socket's header\n\nAnd close it twice, close it.", "src/header.py", "src/socket.py")
    for commits in ((OLD,), (many, NEW, OLD), (other, many, NEW, OLD)):
        await RepoHistory(file).update(Sources(tmp_path, *commits))
    monkeypatch.delattr(counted_commits, "count_stems")
    kept = RepoHistory(file)
    await kept.update(Sources(tmp_path, other, many, NEW, OLD))
    monkeypatch.undo()
    made, commit_index = CommitIndex((other, many, NEW, OLD)), kept.commit_index
    assert commit_index is not None
    assert (commit_index.ids, commit_index.paths) == (made.ids, made.paths)
    assert commit_index.recent.tolist() == made.recent.tolist()
    for stems in (("close", "socket"), ("header",), tuple(count_stems("reads once"))):
        assert commit_index.nearest(stems).tolist() == made.nearest(stems).tolist()
        assert commit_index.nearest_titles(stems).tolist() == made.nearest_titles(stems).tolist()
        assert commit_index.titles(stems).tolist() == made.titles(stems).tolist()
    assert file.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b"[" * 100_000, mtime=0),
        gzip.compress(b'{"format": 1, "commits": [["a\\u0000b", "m", ["x"]]]}', mtime=0),
    ],
)
async def test_a_broken_file_is_not_trusted(tmp_path: Path, content: bytes) -> None:
    await assert_not_trusted(tmp_path / "past.json.gz", content)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 1),
        ("commits", [["a\0b", ["x"]]]),
        ("commits", [["-" * 40, ["x"]]]),
        ("commits", [["1" * 40, [1]]]),
        ("commits", []),
        ("words", ["b", "a"]),
        ("words", ["a\nb", "b"]),
        ("titles", [[2], [0, 1], [1]]),
        ("titles", [[3], [0, 1], [1, 1]]),
        ("titles", [[2], [0, 2], [1, 1]]),
        ("titles", [[2], [0, -1], [1, 1]]),
        ("titles", [[2], [0, 1], [1, 10**30]]),
        ("titles", [[2], [0, 1], [1, 1.5]]),
    ],
)
async def test_a_file_with_one_part_that_does_not_fit_is_not_trusted(tmp_path: Path, name: str, value: object) -> None:
    said = [[2], [0, 1], [1, 1]]
    good = {"format": 2, "commits": [["2" * 40, ["x"]]], "words": ["a", "b"], "messages": said, "titles": said}
    file = tmp_path / "past.json.gz"
    file.write_bytes(gzip.compress(json.dumps(good).encode(), mtime=0))
    assert load_commits(file).ids == ("2" * 40,)
    await assert_not_trusted(file, gzip.compress(json.dumps(good | {name: value}).encode(), mtime=0))


async def assert_not_trusted(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    history, sources = RepoHistory(file), Sources(file.parent, OLD)
    await history.update(sources)
    assert history.commit_index is not None
    assert list(history.commit_index.ids) == [OLD.id]
    assert {until for _, until in sources.asked} == {""}


def test_words_of_messages_and_nearest_commits_speak_for_their_files() -> None:
    many = commit(3, "Move the socket everywhere", *(f"src/{number}.py" for number in range(30)))
    filler = [commit(10 + number, f"Other work {number}", f"lib/{number}.py") for number in range(9)]
    commit_index = CommitIndex([NEW, OLD, many, *filler])
    assert "src/0.py" not in commit_index.paths
    assert (
        score(commit_index, "src/socket.py", "the socket leaks")
        > 0
        == score(commit_index, "src/header.py", "the socket leaks")
    )
    assert score(commit_index, "src/socket.py", "person") == 0
    votes = commit_index.nearest(tuple(count_stems("close sockets")))
    assert commit_index.paths[int(votes.argmax())] == "src/socket.py"
    assert commit_index.words_of(["gone.py", "src/socket.py"], ("socket", "header")) == [[], ["socket"]]
    # What only the rest of a message says made the commit vote, so it is told too.
    assert commit_index.words_of(["src/socket.py"], tuple(count_stems("leaked"))) == [list(count_stems("leaked"))]
    assert CommitIndex([]).nearest(("socket",)).tolist() == []
