"""A folder as a queue: whatever lies in it, whoever dies, each task ends once and no file is lost."""

import asyncio
import os
import stat
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from agent_workbench.core.errors import LockedError, StorageError, UsageError
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.plan import TaskOrigin, TaskStatus
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim
from agent_workbench.core.task_result import TaskResult, decode_result, encode_result
from agent_workbench.subjects.queue import folder_adapter, records_adapter
from agent_workbench.subjects.queue.files_adapter import QueueFiles
from agent_workbench.subjects.queue.folder_adapter import FolderQueue
from agent_workbench.subjects.queue.records_adapter import QueueRecords
from agent_workbench.subjects.queue.wiring import definition_facts
from tests.contracts.clocks import SetClock

LEASE = 30.0
PARTS = ("tasks", "queue", "default")
SESSION = SessionId("20260102T030405-abc234")
RESULT = TaskResult("a", TaskStatus.DONE, "committed", 0, session=SESSION)


class Place:
    """A repository's folder with a queue, and the state folder of its workers."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.state = folder / "state"
        self.queue = self.root.joinpath(*PARTS)
        self.clock = SetClock()
        self.tracked: Collection[str] | None = frozenset()
        self.root.mkdir(parents=True)

    def open(self) -> FolderQueue:
        """Return the queue as another process would see it."""
        return FolderQueue(
            QueueFiles(self.root, PARTS),
            QueueRecords(self.state),
            self.clock,
            definition_facts,
            lambda: self.tracked,
        )

    def write(self, name: str, text: str = "goal: x y\n") -> Path:
        self.queue.mkdir(parents=True, exist_ok=True)
        path = self.queue / name
        path.write_text(text)
        return path

    def listed(self, end: str = "") -> list[str]:
        folder = self.queue / end
        files = (each.name for each in folder.iterdir() if not each.is_dir()) if folder.exists() else ()
        return sorted(name for name in files if name not in {".gitignore", ".workers"})

    def refusal(self, stem: str) -> str:
        """Return the reason that stands beside a refused file."""
        name = f"{stem}.result.json"
        return decode_result((self.queue / "failed" / name).read_text(), name).reason


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(folder_adapter, "WRITING_SECONDS", 0.0)
    return Place(tmp_path)


async def taken(queue: FolderQueue, worker: str = "one") -> TaskClaim:
    claim = await queue.claim(worker, LEASE)
    assert claim is not None
    return claim


async def test_without_its_folder_there_is_nothing_to_do_and_nothing_is_made(place: Place) -> None:
    queue = place.open()
    assert not await queue.exists()
    assert (await queue.claim("one", LEASE), await queue.tasks()) == (None, ())
    assert list(place.root.iterdir()) == []


async def test_files_of_both_suffixes_come_by_priority_then_by_name(place: Place) -> None:
    for name in ("b.yaml", "a.yml", "c.yaml", ".hidden.yaml", "notes.txt", "d.yaml~"):
        place.write(name)
    place.write("z.yaml", "goal: now\npriority: 2\n")
    queue = place.open()
    assert [(await taken(queue)).task.id for _ in range(4)] == ["z", "a", "b", "c"]
    assert await queue.claim("one", LEASE) is None


async def test_the_ended_file_lies_beside_its_result(place: Place) -> None:
    definition = "goal: a thing\n# mine\n"
    place.write("a.yml", definition)
    queue = place.open()
    await queue.finish(await taken(queue), QueueState.DONE, "committed", RESULT)
    assert place.listed() == []
    assert place.listed("done") == ["a.result.json", "a.yml"]
    assert (place.queue / "done/a.yml").read_text() == definition
    assert decode_result((place.queue / "done/a.result.json").read_text(), "a") == RESULT
    assert await place.open().claim("two", LEASE) is None


async def test_nothing_in_done_or_failed_is_replaced(place: Place) -> None:
    for end in ("done", "failed"):
        (place.queue / end).mkdir(parents=True)
        (place.queue / end / "a.yaml").write_text("mine")
        (place.queue / end / "a-2.result.json").write_text("mine too")
    place.write("a.yaml")
    queue = place.open()
    await queue.finish(await taken(queue), QueueState.DONE, "", RESULT)
    assert place.listed("done") == ["a-2.result.json", "a-3.result.json", "a-3.yaml", "a.yaml"]
    assert (place.queue / "done/a.yaml").read_text() == "mine"
    place.write("a.yaml", "gaol: x")
    assert await queue.claim("one", LEASE) is None
    assert place.listed("failed") == ["a-2.result.json", "a-3.result.json", "a-3.yaml", "a.yaml"]


async def test_a_name_can_be_queued_again_after_its_end_and_old_claims_stay_old(place: Place) -> None:
    place.write("a.yaml")
    queue = place.open()
    old = await taken(queue)
    await queue.finish(old, QueueState.DONE, "", RESULT)
    place.write("a.yaml", "goal: again\n")
    new = await taken(queue)
    assert new.fence > old.fence
    assert new.task.definition == "goal: again\n"
    with pytest.raises(LockedError):
        await queue.finish(old, QueueState.FAILED, "")


async def test_a_file_that_is_changed_meanwhile_is_another_task(place: Place) -> None:
    path = place.write("a.yaml", "goal: first\n")
    queue = place.open()
    claim = await taken(queue)
    path.write_text("goal: second\n")
    await queue.finish(claim, QueueState.DONE, "", RESULT)
    assert (place.queue / "done/a.yaml").read_text() == "goal: first\n"
    assert (await taken(queue)).task.definition == "goal: second\n"


async def test_a_file_that_is_removed_meanwhile_is_written_to_done(place: Place) -> None:
    path = place.write("a.yaml", "goal: first\n")
    queue = place.open()
    claim = await taken(queue)
    path.unlink()
    await queue.finish(claim, QueueState.DONE, "", RESULT)
    assert (place.queue / "done/a.yaml").read_text() == "goal: first\n"


@pytest.mark.parametrize("how", ["parked", "resumed", "dead"])
async def test_a_task_whose_file_is_removed_is_withdrawn(place: Place, how: str) -> None:
    path = place.write("a.yaml")
    queue = place.open()
    claim = await taken(queue)
    await queue.renew(claim, LEASE, SESSION)
    if how != "dead":
        await queue.park(claim, "a diff waits")
    if how == "resumed":
        await queue.resume("a")
    await queue.close()
    other = place.open()
    assert not await other.withdrew("a", SESSION)
    path.unlink()
    for _ in range(2):
        assert [(each.id, each.state) for each in await other.tasks()] == [("a", QueueState.WITHDRAWN)]
        assert await other.withdrew("a", SESSION)
        assert not await other.withdrew("a", NO_SESSION), "its records are of another session"
        assert await other.claim("two", LEASE) is None
    assert place.listed("failed") == []
    place.write("a.yaml", "goal: again\n")
    again = await taken(other)
    assert (again.task.definition, again.task.session) == ("goal: again\n", "")


async def test_a_file_that_is_only_replaced_withdraws_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.write("a.yaml")
    queue = place.open()
    claim = await taken(queue)
    await queue.renew(claim, LEASE, SESSION)
    await queue.park(claim, "a diff waits")
    await queue.resume("a")
    path.unlink()
    # What the queue waits for is an editor here.
    monkeypatch.setattr(time, "sleep", lambda _: place.write("a.yaml"))
    assert await queue.claim("one", LEASE) is None
    assert (await taken(queue)).task.session == SESSION


async def test_without_its_folder_no_task_is_withdrawn(place: Place) -> None:
    place.write("a.yaml")
    queue = place.open()
    await queue.park(await taken(queue), "a diff waits")
    place.queue.rename(place.queue.with_name("away"))
    assert await queue.claim("one", LEASE) is None
    assert [each.state for each in await queue.tasks()] == [QueueState.PARKED]


BROKEN = {
    "syntax.yaml": ("goal: [", "syntax.yaml:1:"),
    "key.yaml": ("gaol: x\n", "key.yaml:1:1: unknown key 'gaol'; did you mean 'goal'?"),
    "empty.yaml": ("", "expected a mapping"),
    "two.yaml": ("goal: a\n---\ngoal: b\n", "second one"),
    "origin.yaml": ("goal: x\norigin: local\n", "unknown key 'origin'"),
    "status.yaml": ("goal: x\nstatus: done\n", "unknown key 'status'"),
    "nul.yaml": ("goal: \0\n", "U+0000"),
    "huge.yaml": ("goal: " + "x" * 1_000_001, "more than 1000000 bytes"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_no_task_goes_to_failed_with_the_reason_and_the_next_one_is_done(place: Place, name: str) -> None:
    text, reason = BROKEN[name]
    place.write(name, text)
    place.write("zz.yaml")
    queue = place.open()
    assert name in {each.id + ".yaml" for each in await queue.tasks() if each.reason}
    assert (await taken(queue)).task.id == "zz"
    stem = name.removesuffix(".yaml")
    assert place.listed("failed") == [f"{stem}.result.json", name]
    assert reason in place.refusal(stem)
    ((told, why),) = queue.refused()
    assert (told, reason in why, queue.refused()) == (name, True, ())
    assert await place.open().claim("two", LEASE) is None


async def test_a_file_that_is_still_being_written_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.write("a.yaml", "goal: [")
    # What the queue waits for is the writer here.
    monkeypatch.setattr(time, "sleep", lambda _: path.write_text("goal: whole now\n"))
    queue = place.open()
    assert await queue.claim("one", LEASE) is None
    assert (await taken(queue)).task.definition == "goal: whole now\n"


async def test_many_files_are_looked_at_in_turn(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_adapter, "MOST_FILES", 3)
    for name in ("a.yaml", "b.yaml", "c.yaml", "d.yaml"):
        place.write(name, "gaol: x\n")
    place.write("e.yaml")
    queue = place.open()
    assert await queue.claim("one", LEASE) is None
    assert (await taken(queue)).task.id == "e"
    assert len(queue.refused()) == 4


async def test_links_pipes_and_folders_are_moved_and_never_opened(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("goal: steal\n")
    place.write("ok.yaml")
    (place.queue / "link.yaml").symlink_to(secret)
    (place.queue / "loop.yaml").symlink_to("loop.yaml")
    os.mkfifo(place.queue / "pipe.yaml")
    (place.queue / "folder.yaml").mkdir()
    queue = place.open()
    assert (await taken(queue)).task.id == "ok"
    failed = place.queue / "failed"
    assert {each.name for each in failed.iterdir() if each.suffix == ".yaml"} == {
        "link.yaml",
        "loop.yaml",
        "pipe.yaml",
        "folder.yaml",
    }
    assert (failed / "link.yaml").is_symlink()
    assert stat.S_ISFIFO((failed / "pipe.yaml").stat().st_mode)
    assert secret.read_text() == "goal: steal\n"
    assert "is not a regular file" in place.refusal("pipe")


@pytest.mark.parametrize(
    "name", [b"a\nb.yaml", b"\x1b]52;c;x\x07.yaml", b"\xff\xfe.yaml", b"x" * 230 + b".yaml", "\u202egnp.yaml".encode()]
)
async def test_odd_names_are_refused_under_a_plain_name(place: Place, name: bytes) -> None:
    place.queue.mkdir(parents=True)
    descriptor = os.open(os.fsencode(place.queue) + b"/" + name, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"goal: x y\n")
    os.close(descriptor)
    assert await place.open().claim("one", LEASE) is None
    kept = [each for each in place.listed("failed") if each.endswith(".yaml")]
    assert len(kept) == 1
    assert kept[0].isascii()
    assert kept[0].isprintable()
    assert "its name" in place.refusal(kept[0].removesuffix(".yaml"))


@pytest.mark.parametrize("name", ["ein Käse.yaml", "--help.yaml", "$(id).yaml", "a..b.yaml", "42.yaml", "x.lock.yaml"])
async def test_names_that_only_look_odd_are_tasks(place: Place, name: str) -> None:
    place.write(name)
    queue = place.open()
    await queue.finish(await taken(queue), QueueState.DONE, "", RESULT)
    assert name in place.listed("done")


@pytest.mark.parametrize("twin", ["a.yml", "A.yaml"])
async def test_of_two_files_with_one_name_the_second_is_refused(place: Place, twin: str) -> None:
    place.write("a.yaml")
    place.write(twin)
    queue = place.open()
    first = await taken(queue)
    assert await queue.claim("two", LEASE) is None
    assert len([each for each in place.listed("failed") if each.endswith((".yaml", ".yml"))]) == 1
    await queue.finish(first, QueueState.DONE, "", RESULT)


async def test_two_files_of_one_task_run_once_whatever_became_of_the_first(place: Place) -> None:
    first, text = place.open(), "id: T-1\ngoal: x y\n"
    place.write("a.yaml", text)
    place.write("b.yaml", text)
    claim = await taken(first)
    assert (claim.task.id, place.refusal("b")) == (
        "T-1",
        "b.yaml: the id T-1 is that of a.yaml, which is queued too",
    )
    place.write("T-1.yaml", "goal: its name is the id\n")
    assert await first.claim("two", LEASE) is None
    await first.park(claim, "waits")
    place.write("c.yaml", text)
    assert await first.claim("two", LEASE) is None
    await first.resume("a")
    await first.finish(await taken(first), QueueState.DONE, "", RESULT)
    place.write("d.yaml", text)
    assert await place.open().claim("two", LEASE) is None
    assert place.refusal("d") == "d.yaml: T-1 is done already; to do it again, give it another `id`"
    assert place.listed("failed") == sorted(
        f"{n}.{end}" for n in ("T-1", "b", "c", "d") for end in ("result.json", "yaml")
    )
    assert [(each.id, each.state) for each in await first.tasks()] == [("T-1", QueueState.DONE)]


@pytest.mark.parametrize("said", ["T-1", "first"])
async def test_a_task_is_called_by_its_id_or_by_the_name_of_its_file(place: Place, said: str) -> None:
    queue = place.open()
    place.write("first.yaml", "id: T-1\ngoal: x y\n")
    place.write("second.yaml", f"id: T-2\ngoal: x y\ndepends_on: [{said}]\n")
    place.write("third.yaml", "id: T-3\ngoal: x y\n")
    claim = await taken(queue)
    await queue.park(claim, "waits")
    assert await queue.resume(said) is QueueState.QUEUED
    await queue.finish(await taken(queue), QueueState.DONE, "", RESULT)
    after = await taken(queue, "two")
    assert (after.task.id, after.task.depends_on) == ("T-2", ("T-1",)), "the id names the branch of its commit"
    assert await queue.resume(said) is QueueState.DONE
    assert not await queue.withdraw(said, "")
    assert await queue.withdraw({"T-1": "T-3", "first": "third"}[said], "not wanted")
    assert place.listed() == ["second.yaml"]


async def test_what_is_put_under_an_id_gives_way_to_what_its_file_says_now(place: Place) -> None:
    queue = place.open()
    assert await queue.put(QueuedTask("T-1", "goal: x y\n", priority=2))
    place.write("T-1.yaml", "id: T-2\ngoal: x y\n")
    assert [(each.id, each.priority) for each in await queue.tasks()] == [("T-2", 2)]
    claim = await taken(queue)
    assert await place.open().claim("two", LEASE) is None
    await queue.finish(claim, QueueState.DONE, "", RESULT)
    assert [(each.id, each.state) for each in await place.open().tasks()] == [("T-2", QueueState.DONE)]


@pytest.mark.parametrize("link", ["tasks", "tasks/queue", "tasks/queue/default", "tasks/queue/default/done"])
async def test_a_link_in_the_path_of_the_folder_is_refused(place: Place, tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    inside = elsewhere if link.endswith("done") else elsewhere.joinpath(*Path(*PARTS).relative_to(link).parts)
    inside.mkdir(parents=True)
    (inside / "theirs.yaml").write_text("gaol: x\n")
    (place.root / link).parent.mkdir(parents=True, exist_ok=True)
    (place.root / link).symlink_to(elsewhere)
    if link.endswith("done"):
        place.write("a.yaml")
    queue = place.open()

    async def work() -> None:
        await queue.finish(await taken(queue), QueueState.DONE, "", RESULT)

    with pytest.raises(StorageError, match="is no folder of this repository"):
        await work()
    assert [each.name for each in inside.iterdir()] == ["theirs.yaml"]


async def test_files_that_git_tracks_are_foreign(place: Place) -> None:
    for name in ("A.yaml", "b.yaml"):
        place.write(name)
    place.tracked = {"a.yaml"}
    queue = place.open()
    claims = [await taken(queue) for _ in range(2)]
    assert [each.task.origin for each in claims] == [TaskOrigin.REPOSITORY, TaskOrigin.LOCAL]
    # The origin stays what it was at the claim.
    place.tracked = frozenset()
    place.clock.seconds += LEASE
    assert (await taken(queue)).task.origin is TaskOrigin.REPOSITORY


@pytest.mark.parametrize("above", ["tasks", "tasks/queue", "tasks/queue/default"])
async def test_files_in_a_repository_of_its_own_are_foreign(place: Place, above: str) -> None:
    place.write("a.yaml")
    (place.root / above / ".git").write_text("gitdir: /elsewhere\n")
    assert (await taken(place.open())).task.origin is TaskOrigin.REPOSITORY


async def test_a_task_from_elsewhere_is_no_file_before_its_end_and_keeps_its_origin(place: Place) -> None:
    queue = place.open()
    assert await queue.put(QueuedTask("issue-7", "goal: from a forge\n", origin=TaskOrigin.FORGE))
    assert not place.queue.exists()
    assert not await place.open().put(QueuedTask("issue-7", "goal: else\n", origin=TaskOrigin.FORGE))
    # A local file of that name gives it no other origin, and is a task of its own.
    place.write("issue-7.yaml", "goal: local\n")
    claim = await taken(place.open())
    assert (claim.task.origin, claim.task.definition) == (TaskOrigin.FORGE, "goal: from a forge\n")
    other = place.open()
    with pytest.raises(LockedError):
        await other.finish(TaskClaim(claim.task, "two", claim.fence), QueueState.DONE, "")
    await other.finish(claim, QueueState.FAILED, "no", RESULT)
    assert (place.queue / "failed/issue-7.yaml").read_text() == "goal: from a forge\n"
    local = await taken(other)
    assert (local.task.origin, local.task.definition) == (TaskOrigin.LOCAL, "goal: local\n")


async def test_a_broken_task_from_elsewhere_ends_as_failed(place: Place) -> None:
    queue = place.open()
    await queue.put(QueuedTask("issue-7", "gaol: x\n", origin=TaskOrigin.FORGE))
    assert await queue.claim("one", LEASE) is None
    assert [(each.id, each.state) for each in await queue.tasks()] == [("issue-7", QueueState.FAILED)]
    assert "unknown key 'gaol'" in place.refusal("issue-7")


@pytest.mark.parametrize("task", ["", "a/b", "../x", ".hidden", "x" * 300, "a\nb", "a\x1b"])
async def test_a_name_that_is_no_files_name_cannot_be_put(place: Place, task: str) -> None:
    with pytest.raises(UsageError):
        await place.open().put(QueuedTask(task, "goal: x\n"))


async def test_what_is_put_is_left_alone_by_git(place: Place) -> None:
    await place.open().put(QueuedTask("a", "goal: x\n"))
    assert (place.queue / ".gitignore").read_text().endswith("*\n")


HOLDER = """
import asyncio, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.subjects.queue.test_folder_queue import LEASE, Place
place = Place.__new__(Place)
place.__dict__.update(root=Path({repo!r}), state=Path({state!r}), tracked=frozenset())
from agent_workbench.adapters.local_machine import SystemClock
place.clock = SystemClock()
async def main():
    claim = await place.open().claim("child", 3600)
    print(claim.task.id, claim.fence, flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


async def test_the_task_of_a_killed_process_is_free_at_once_and_that_of_a_living_one_is_not(place: Place) -> None:
    for name in ("a.yaml", "b.yaml"):
        place.write(name)
    root = str(Path(__file__).parents[3])
    program = HOLDER.format(root=root, repo=str(place.root), state=str(place.state))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert await asyncio.to_thread(child.stdout.readline) == "a 1\n"
            queue = place.open()
            assert (await taken(queue)).task.id == "b"
            assert await queue.claim("one", LEASE) is None
        finally:
            child.kill()
        child.wait()
    again = await taken(queue)
    assert (again.task.id, again.fence) == ("a", 2)
    # What the dead left behind is removed by the next worker that begins; the living keep theirs.
    assert len(list((place.state / "workers").iterdir())) == 2
    place.write("c.yaml")
    other = place.open()
    assert (await taken(other, "two")).task.id == "c"
    assert len(list((place.state / "workers").iterdir())) == 2
    assert await place.open().claim("three", LEASE) is None


async def test_a_closed_queue_gives_its_claims_back(place: Place) -> None:
    place.write("a.yaml")
    queue = place.open()
    claim = await taken(queue)
    await queue.renew(claim, LEASE, SESSION)
    await queue.close()
    assert (await taken(place.open())).task.session == SESSION


async def test_many_processes_share_the_tasks(place: Place) -> None:
    for number in range(5):
        place.write(f"t{number}.yaml")
    queues = [place.open() for _ in range(4)]
    claims = await asyncio.gather(*(queues[number % 4].claim(str(number), LEASE) for number in range(8)))
    names = [claim.task.id for claim in claims if claim is not None]
    assert sorted(names) == sorted(f"t{number}" for number in range(5))


async def test_an_end_that_the_disk_kept_from_its_folder_is_told_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("a.yaml")
    queue = place.open()
    claim = await taken(queue)

    def full(*_: object) -> str:
        raise StorageError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(QueueFiles, "file_away", full)
        with pytest.raises(StorageError):
            await queue.finish(claim, QueueState.DONE, "", RESULT)
    with pytest.raises(LockedError):
        await queue.finish(claim, QueueState.FAILED, "")
    await queue.finish(claim, QueueState.DONE, "", RESULT)
    assert place.listed("done") == ["a.result.json", "a.yaml"]
    with pytest.raises(LockedError):
        await queue.finish(claim, QueueState.DONE, "", RESULT)


class Killed(BaseException):
    """The process is no more."""


async def test_a_worker_with_another_state_folder_waits_until_the_first_is_gone(place: Place) -> None:
    for name in ("a.yaml", "b.yaml"):
        place.write(name)
    queue, sibling = place.open(), place.open()
    await taken(queue)
    stranger = Place.__new__(Place)
    stranger.__dict__.update(place.__dict__, state=place.state.with_name("other"))
    other = stranger.open()
    with pytest.raises(LockedError, match="another state folder"):
        await other.claim("two", LEASE)
    assert (await taken(sibling)).task.id == "b"
    await queue.close()
    await sibling.close()
    assert (await taken(other)).task.id == "a"


async def test_the_lock_of_the_workers_is_no_link(place: Place, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    place.write("a.yaml")
    (place.queue / ".workers").symlink_to(victim)
    with pytest.raises(StorageError):
        await place.open().claim("one", LEASE)
    assert victim.read_text() == "mine"


async def test_a_text_that_cannot_be_written_is_refused(place: Place) -> None:
    with pytest.raises(UsageError, match="half a character"):
        await place.open().put(QueuedTask("a", "goal: \ud800\n", origin=TaskOrigin.FORGE))


CALLS = [(os, "write"), (os, "fsync"), (os, "link"), (os, "unlink"), (os, "mkdir"), (Path, "replace")]


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have nothing reach the disk from the `number`th change of it on."""
    seen = 0

    def wrapped(original: object) -> object:
        def call(*arguments: object, **named: object) -> object:
            nonlocal seen
            seen += 1
            if seen >= number:
                raise Killed
            return original(*arguments, **named)  # type: ignore[operator]  # one of the functions below

        return call

    for owner, name in CALLS:
        monkeypatch.setattr(owner, name, wrapped(getattr(owner, name)))


@pytest.mark.parametrize("point", range(1, 40))
async def test_killed_at_any_write_a_task_ends_once_and_no_file_is_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
    place.write("a.yaml", "id: T-1\ngoal: a thing\n")
    place.write("b.yaml", "gaol: broken\n")
    done, killed = 0, False
    queue = place.open()
    with monkeypatch.context() as patched:
        kill_at(patched, point)
        try:
            claim = await taken(queue)
            await queue.renew(claim, LEASE, SESSION)
            await queue.finish(claim, QueueState.DONE, "committed", RESULT)
            done += 1
        except Killed:
            killed = True
        queue.__dict__["_records"]._lock = None  # the kernel frees the lock of a dead process
    place.clock.seconds += LEASE
    other = place.open()
    while (late := await other.claim("two", LEASE)) is not None:
        assert late.task.id == "T-1"
        await other.finish(late, QueueState.DONE, "committed", RESULT)
        done += 1
    assert done == 1 or (killed and done <= 1)
    assert place.listed("done") == ["a.result.json", "a.yaml"]
    assert [each for each in place.listed("failed") if each.endswith(".yaml")] == ["b.yaml"]
    assert (place.queue / "done/a.result.json").read_text() == encode_result(RESULT)
    assert not [each for each in place.listed() if not each.endswith(".tmp")]
