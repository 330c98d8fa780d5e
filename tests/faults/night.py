"""A night of a queue's workers, with what goes wrong at random moments, and the decisions of the next morning."""

import random
import time
from collections.abc import Callable

from msgspec import Struct

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.machine import Machine, bodies
from tests.e2e.test_inbox import reference
from tests.faults.night_audit import check_effects, check_ends, check_journals, check_workers, ended, journals
from tests.faults.night_chaos import Disk, ModelServer, Workers
from tests.faults.night_forge import ForgeSide
from tests.faults.night_scene import Counts, night_scene, queue_all
from tests.faults.night_screen import approve_on_screen

NIGHT_SECONDS = 1800.0
OURS = ("memory", "tasks/queue")


class Chaos(Struct, frozen=True):
    """How often each thing goes wrong, and the seed of the moments: numbers of recorded events."""

    kills: int = 5
    restarts: int = 2
    full_disks: int = 1
    seed: int = 0
    first_event: int = 20
    last_event: int = 500


class Night:
    """One night; `work` ends when only persons' tasks are left, `settle` when these are done too."""

    def __init__(self, machine: Machine, server: ModelServer, forge: ForgeSide, counts: Counts) -> None:
        self.machine = machine
        self.server = server
        self.forge = forge
        self.scene = night_scene(machine, counts)
        self.disk = Disk(self.scene.repo / "memory")
        self.before = fingerprint(self.scene.repo, OURS)
        self.happened: list[str] = []
        self._workers: Workers | None = None

    @property
    def workers(self) -> Workers:
        """The workers, once they are started."""
        assert self._workers is not None
        return self._workers

    def work(self, chaos: Chaos, number: int = 2) -> None:
        """Queue everything and work, while things go wrong, until nothing is left but what needs a person."""
        queue_all(self.scene)
        self.forge.queue(self.machine, self.scene)
        self._workers = Workers(self.machine, self.scene, number)
        due = self._plan(chaos)
        deadline = time.monotonic() + NIGHT_SECONDS
        while due or not self._over():
            assert time.monotonic() < deadline, f"never over: {self.state()}"
            count = sum(len(lines) for _, lines in journals(self.scene.repo))
            if due and (count >= due[0][0] or self._over()):
                due.pop(0)[1]()
            time.sleep(0.05)  # polled: other processes set no event here

    def _plan(self, chaos: Chaos) -> list[tuple[int, Callable[[], None]]]:
        """Return what goes wrong, with the number of events after which it does."""
        dice = random.Random(chaos.seed)
        wrong: list[Callable[[], None]] = [self._kill_one(dice) for _ in range(chaos.kills)]
        wrong += [self._restart] * chaos.restarts + [self._fill_the_disk] * chaos.full_disks
        dice.shuffle(wrong)
        moments = sorted(dice.randint(chaos.first_event, chaos.last_event) for _ in wrong)
        return list(zip(moments, wrong, strict=True))

    def _kill_one(self, dice: random.Random) -> Callable[[], None]:
        index = dice.randrange(2)

        def kill() -> None:
            self.workers.kill(index % len(self.workers.running))
            self.happened.append("kill")

        return kill

    def _restart(self) -> None:
        before = self._logged("model")
        self.server.stop()
        self._until(lambda: self._logged("model") > before or self._over(), "a wait for the model")
        self._note("restart", noticed=self._logged("model") > before)
        self.server.start()

    def _fill_the_disk(self) -> None:
        before = self._logged("disk")
        if self.disk.mounted:
            self.disk.fill()
        else:
            self.workers.kill(0, small_files=True)
        self._until(lambda: self._logged("disk") > before or self._over(), "a wait for the disk")
        self._note("full disk", noticed=self._logged("disk") > before)
        if self.disk.mounted:
            self.disk.clear()
        else:
            self.workers.kill(0)

    def _logged(self, cause: str) -> int:
        return self.workers.logs().count(f'"text": "waiting for the {cause}')

    def _note(self, what: str, *, noticed: bool) -> None:
        # Near the end of a night no worker may need what is missing.
        self.happened.append(what if noticed else f"{what}, which nobody noticed")

    def _until(self, condition: Callable[[], bool], what: str, seconds: float = 300.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"never: {what}: {self.state()}"
            time.sleep(0.02)  # polled, as above

    def _over(self) -> bool:
        alone = len(self.scene.done_alone) + len(self.scene.failing)
        return len(ended(self.scene, "done") | ended(self.scene, "failed")) >= alone and self.parked() == set(
            self.scene.person
        )

    def parked(self) -> set[str]:
        """Return the persons' tasks whose diff waits, and which no worker has open."""
        waiting = set[str]()
        for _, lines in journals(self.scene.repo):
            started, kinds = bodies(lines, "task_started"), [line["kind"] for line in lines]
            undecided = len(bodies(lines, "action_proposed")) > len(bodies(lines, "action_decided"))
            if started and undecided and kinds[-1] == "session_left":
                waiting.add(str(started[0]["task"]))
        return waiting

    def check_night(self) -> None:
        """Fail unless all that needs nobody is over, once, and nothing else happened."""
        done = self.scene.done_alone
        check_ends(self.scene, done, waiting=self.scene.person)
        check_effects(self.machine, self.scene, done)
        check_journals(self.machine, self.scene, done)
        assert fingerprint(self.scene.repo, OURS) == self.before

    def settle(self) -> list[float]:
        """Decide what waits, on the screen, in the shell and in comments, and wait for the ends; then end the workers.

        Return the seconds from each decision until a worker had recorded it.
        """
        delays = []
        in_shell = self.scene.tasks["person"][-1:]
        for task in self.scene.person:
            if task in self.scene.tasks["forge"]:
                self.forge.approve(self.machine, self.scene, task)
            elif task not in in_shell:
                approve_on_screen(self.machine, self.scene, task)
                continue  # the screen shows for a while that the worker went on
            else:
                self._approve(task)
            decided = time.monotonic()
            self._until(lambda task=task: task not in self.parked(), f"the decision about {task}")  # type: ignore[misc]
            delays.append(time.monotonic() - decided)
        done = {*self.scene.done_alone, *self.scene.person}
        self._until(lambda: ended(self.scene, "done") == done, "the ends of the persons' tasks")
        ends = self.workers.end()
        assert {end.code for end in ends} == {130}, [end.said for end in ends]
        check_ends(self.scene, done)
        check_effects(self.machine, self.scene, done)
        check_journals(self.machine, self.scene, done)
        check_workers(self.workers)
        self.forge.check(self.scene)
        assert fingerprint(self.scene.repo, OURS) == self.before
        return delays

    def _approve(self, task: str) -> None:
        """Approve what waits of a task in the shell."""
        decided = self.machine.agent(
            "inbox", "approve", reference(self.machine, self.scene.repo, task), cwd=self.scene.repo
        )
        assert decided.code == 0, decided.said

    def state(self) -> str:
        """Return what is where, for the message of a failure."""
        ends = {end: sorted(ended(self.scene, end)) for end in ("done", "failed")}
        return f"{ends}, parked {sorted(self.parked())}, {self.happened}\n{self.workers.logs()[-4000:]}"
