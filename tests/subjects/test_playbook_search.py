"""Search for a playbook: exact, by words, by meaning, and what is offered where none fits."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from agent_workbench.core.playbooks import Playbook, PlaybookSearch
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.subjects.playbooks_search_adapter import list_playbooks, search_playbooks

KUMA = "# agent:service=status-page\n- name: Deploy Uptime Kuma\n  hosts: web\n"
FILES = {
    "deploy-kuma.yml": KUMA,
    "playbooks/restart_web.yaml": "# chiffon:service=web\n- name: Restart nginx\n  hosts: web\n",
    "playbooks/backup-db.yml": "- name: Back up the database\n  hosts: db\n",
    "playbooks/users.yml": "- name: Create users and their keys\n  hosts: all\n",
    "roles/kuma/tasks/main.yml": "- name: x\n  hosts: no\n",
    "notes.yml": "a: 1\n",
}


class Files:
    root = "/repo"

    def __init__(self, files: Mapping[str, str] = FILES) -> None:
        self.files = files

    async def list_files(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return {path: self.files[path].encode() for path in paths}

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return ()


class Vectors:
    """Cosines as given; keeps what was to be embedded."""

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self.given = cosines
        self.texts: Mapping[str, bytes] = {}
        self.reading: Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]] | None = None

    def update(self, blobs: Mapping[str, str], read: Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]) -> None:
        self.reading = read

    async def cosines(self, words: str) -> Mapping[str, float]:
        assert self.reading is not None
        self.texts = await self.reading(["deploy-kuma.yml"])
        return self.given

    async def close(self) -> None:
        pass


async def found(words: str, vectors: Vectors | None = None) -> PlaybookSearch:
    return await search_playbooks(await list_playbooks(Files()), words, vectors)


@pytest.mark.parametrize(
    ("words", "path", "reason"),
    [
        ("playbooks/users.yml", "playbooks/users.yml", "its path"),
        ("deploy kuma", "deploy-kuma.yml", "its name"),
        ("Deploy_KUMA.yml", "deploy-kuma.yml", "its name"),
        ("status page", "deploy-kuma.yml", "its service"),
        ("web", "playbooks/restart_web.yaml", "its service"),
        ("please restart the nginx", "playbooks/restart_web.yaml", "its words"),
        ("database backups", "playbooks/backup-db.yml", "its words"),
    ],
)
async def test_what_is_said_of_a_playbook_finds_it(words: str, path: str, reason: str) -> None:
    search = await found(words)
    assert (search.found.path if search.found else "", search.reason) == (path, reason)


@pytest.mark.parametrize("words", ["make coffee", "remove kuma", "", "ansible", "😀" * 600, "a" * 10_000])
async def test_without_a_fit_the_three_nearest_are_offered(words: str) -> None:
    search = await found(words)
    assert search.found is None
    assert len(search.nearest) == 3
    assert all(alike is None for _, alike in search.nearest)


async def test_meaning_counts_from_the_threshold_on() -> None:
    near = await found("bring up the monitoring", Vectors({"deploy-kuma.yml": 0.8499, "playbooks/users.yml": 0.2}))
    assert (near.found, near.nearest[0]) == (None, (near.nearest[0][0], 0.8499))
    assert near.nearest[0][0].path == "deploy-kuma.yml"
    vectors = Vectors({"deploy-kuma.yml": 0.85, "playbooks/users.yml": 0.2})
    search = await found("bring up the monitoring", vectors)
    assert search.found is not None
    assert (search.found.path, search.reason) == ("deploy-kuma.yml", "its meaning (0.85, at least 0.85)")
    assert vectors.texts == {"deploy-kuma.yml": b"deploy kuma\nstatus-page\nDeploy Uptime Kuma"}


async def test_all_that_a_playbook_says_of_itself_finds_it_and_no_word_more() -> None:
    files = {"web/one.yml": "- name: Restart\n  hosts: a\n", "two.yml": "- name: Restart all\n  hosts: b\n"}
    playbooks = await list_playbooks(Files(files))
    for playbook in playbooks:
        search = await search_playbooks(playbooks, playbook.text, None)
        assert (search.found, search.reason) == (playbook, "its words")
        more = await search_playbooks(playbooks, f"{playbook.text} twice", None)
        assert more.found is None


async def test_two_that_fit_are_offered_and_none_is_taken() -> None:
    files = {"a/deploy.yml": "- hosts: a\n", "b/deploy.yml": "- hosts: b\n", "c.yml": "- hosts: c\n"}
    search = await search_playbooks(await list_playbooks(Files(files)), "deploy", None)
    assert (search.found, [each.path for each, _ in search.nearest]) == (None, ["a/deploy.yml", "b/deploy.yml"])


async def test_no_playbooks() -> None:
    assert await search_playbooks(await list_playbooks(Files({})), "deploy", Vectors({})) == PlaybookSearch()


def test_the_text_of_a_playbook() -> None:
    assert Playbook("a.yml", ("s",), ("p",), "about").text == "a.yml\ns\np\nabout"
