"""A fleet at work, what goes wrong in it, and what must be true afterwards: each effect once, every forgery found."""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
from msgspec import Struct

from tests.e2e.machine import Done, Machine, Running, bodies
from tests.e2e.test_inbox import reference
from tests.faults.fleet_scene import PROJECT, FleetScene, clone_of
from tests.postgres import PostgresServer

ENDED = ("done", "failed", "withdrawn")


class FleetChaos(Struct, frozen=True):
    """How often each thing goes wrong; `first` and `last` bound the number of ended tasks at which it does."""

    kills: int = 6
    freezes: int = 3
    cuts: int = 3
    restarts: int = 2
    seed: int = 0
    first: int = 5
    last: int = 180


class Fleet:
    """Workers of a scene, each on its machine; what is killed is started again."""

    def __init__(
        self, scene: FleetScene, server: PostgresServer, url: str, lease_seconds: float, most_seconds: float = 1800.0
    ) -> None:
        self.scene = scene
        self.happened: list[str] = []
        self.seconds_to_take_over: list[float] = []
        self._server = server
        self._url = url
        self._lease_seconds = lease_seconds
        self._most_seconds = most_seconds
        self.running: dict[str, Running] = {}
        self.killed: list[Running] = []

    def queue_all(self) -> None:
        """Have the person put all tasks."""
        for task in self.scene.all_tasks:
            path = self.scene.person.folder / f"{task}.yaml"
            path.write_text(self.scene.definition(task))
            self.ask(self.scene.person, "worker", "add", str(path), "--project", PROJECT)

    def ask(self, machine: Machine, *arguments: str) -> Done:
        """Run a command in the clone of a machine; fail if it does."""
        done = machine.agent(*arguments, cwd=clone_of(machine))
        assert done.code == 0, done.said
        return done

    def start(self) -> None:
        """Start a worker on each machine."""
        for name in self.scene.workers:
            self._start(name)

    def _start(self, name: str) -> None:
        machine = self.scene.workers[name]
        self.running[name] = machine.start(
            *("worker", "--watch", "--project", PROJECT, "--policy", str(machine.folder / "policy.yml")),
            *("--log-format", "json"),
            cwd=clone_of(machine),
            scripts=self.scene.scripts,
            lease_seconds=self._lease_seconds,
        )

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return what the database answers to a query of the test."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            found = connection.execute(query.encode(), values)
            return found.fetchall() if found.description else []

    def states(self) -> Counter[str]:
        """Return how many tasks are in each state."""
        return Counter(str(state) for (state,) in self.rows("SELECT state FROM agent_tasks"))

    def parked(self) -> set[str]:
        """Return the parked tasks."""
        return {str(task) for (task,) in self.rows("SELECT id FROM agent_tasks WHERE state = 'parked'")}

    def work(self, chaos: FleetChaos) -> None:
        """Work until only tasks that need a person are left, while things go wrong."""
        self.start()
        due = self._plan(chaos)
        deadline = time.monotonic() + self._most_seconds
        while due or not self._over():
            assert time.monotonic() < deadline, f"never over: {self.state()}"
            ended = sum(self.states()[state] for state in ENDED)
            if due and (ended >= due[0][0] or self._over()):
                due.pop(0)[1]()
            time.sleep(0.1)  # polled: other processes set no event here

    def _over(self) -> bool:
        states = self.states()
        person = set(self.scene.tasks["person"])
        return (
            states["queued"] == states["claimed"] == 0
            and states["done"] >= len(self.scene.all_tasks) - len(person)
            and self.parked() == person
        )

    def _plan(self, chaos: FleetChaos) -> list[tuple[int, Callable[[], None]]]:
        dice = random.Random(chaos.seed)
        wrong: list[Callable[[], None]] = [self._kill_one(dice) for _ in range(chaos.kills)]
        wrong += [self._freeze_one(dice) for _ in range(chaos.freezes)]
        wrong += [self._cut] * chaos.cuts + [self._restart] * chaos.restarts
        dice.shuffle(wrong)
        moments = sorted(dice.randint(chaos.first, chaos.last) for _ in wrong)
        return list(zip(moments, wrong, strict=True))

    def _claimed_by(self, name: str) -> list[str]:
        found = self.rows("SELECT id FROM agent_tasks WHERE state = 'claimed' AND worker = %s", name)
        return [str(task) for (task,) in found]

    def _taken_over(self, tasks: list[str], name: str) -> bool:
        found = self.rows(
            "SELECT count(*) FROM agent_tasks WHERE id = ANY(%s) AND worker <> %s AND state <> 'queued'", tasks, name
        )
        return int(found[0][0]) == len(tasks)

    def _kill_one(self, dice: random.Random) -> Callable[[], None]:
        name = dice.choice(list(self.scene.workers))

        def kill() -> None:
            self.kill(name)
            self._start(name)

        return kill

    def kill(self, name: str) -> None:
        """Kill a worker with SIGKILL."""
        victim = self.running.pop(name)
        victim.send(signal.SIGKILL)
        self.killed.append(victim)
        self.happened.append(f"killed {name}")

    def _freeze_one(self, dice: random.Random) -> Callable[[], None]:
        name = dice.choice(list(self.scene.workers))

        def freeze() -> None:
            """Stop a worker that has a task, until another one has it; then it goes on, and must change nothing."""
            self.until(lambda: bool(self._claimed_by(name)) or self._over(), f"{name} has a task")
            process = self.running[name].process
            process.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            tasks = self._claimed_by(name)
            try:
                self.until(lambda: self._taken_over(tasks, name), f"others have the tasks of {name}")
            finally:
                process.send_signal(signal.SIGCONT)
            if tasks:
                self.seconds_to_take_over.append(time.monotonic() - stopped)
            self.happened.append(f"froze {name} with {len(tasks)}")

        return freeze

    def _cut(self) -> None:
        """Cut all connections to the database."""
        self.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        self.happened.append("cut connections")

    def _restart(self) -> None:
        """Stop the database at once, as by a power cut, and start it."""
        self._server.stop(signal.SIGQUIT)
        self._server.start()
        self.happened.append("restarted the database")

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"never: {what}: {self.state()}"
            time.sleep(0.02)  # polled, as above

    def settle(self) -> list[float]:
        """Have the person decide what waits, on their machine; return the seconds until each task was done."""
        delays = []
        for task in self.scene.tasks["person"]:
            name = reference(self.scene.person, clone_of(self.scene.person), task)
            self.ask(self.scene.person, "inbox", "approve", name)
            decided = time.monotonic()
            self.until(lambda task=task: task not in self.parked(), f"the decision about {task}")  # type: ignore[misc]
            delays.append(time.monotonic() - decided)
        self.until(lambda: self.states() == Counter(done=len(self.scene.all_tasks)), "all tasks are done")
        return delays

    def end(self) -> list[Done]:
        """End all workers with SIGTERM; return how each ended. Fails if one had ended by itself."""
        gone = {name: each.wait() for name, each in self.running.items() if each.process.poll() is not None}
        assert not gone, f"{ {name: (end.code, end.said[-3000:]) for name, end in gone.items()} }, {self.happened}"
        return [each.send(signal.SIGTERM) for each in self.running.values()]

    def logs(self) -> str:
        """Return what all workers printed."""
        return "".join(each.out.read_text() + each.err.read_text() for each in (*self.killed, *self.running.values()))

    def _waits(self) -> str:
        return "\n".join(each.err.read_text()[-20_000:] for each in self.running.values())

    def state(self) -> str:
        """Return what is where, for the message of a failure."""
        for each in self.running.values():
            each.process.send_signal(signal.SIGUSR1)
        time.sleep(1)  # until they have told where they wait
        open_tasks = self.rows("SELECT id, state, worker, reason FROM agent_tasks WHERE state NOT IN ('done') LIMIT 20")
        return f"{self.states()}, {open_tasks}, {self.happened}\n{self.logs()[-6000:]}\n{self._waits()}"


_HEADS = (
    "SELECT t.id, t.session, t.worker, t.fence, (SELECT max(seq) FROM agent_lines l WHERE l.session = t.session)"
    " FROM agent_tasks t"
)


def check_effects(fleet: Fleet) -> None:
    """Fail unless each task has one commit at the remote, one result, and one commit and end in all journals."""
    scene = fleet.scene
    git = scene.person.git
    branches = git(scene.remote, "for-each-ref", "--format=%(refname)", "refs/heads/agent/").split()
    commits = {branch: git(scene.remote, "rev-list", f"main..{branch}").split() for branch in branches}
    assert {branch for branch, made in commits.items() if made} == {
        f"refs/heads/agent/{task}" for task in scene.all_tasks
    }
    for task in scene.all_tasks:
        (commit,) = commits[f"refs/heads/agent/{task}"]
        changed = git(scene.remote, "diff", "--name-status", f"{commit}~1", commit).split()
        assert changed == ["A", scene.path_of(task)]
    assert fleet.states() == Counter(done=len(scene.all_tasks))
    started, committed, finished = Counter[str](), Counter[str](), Counter[str]()
    for session, lines in _journals(fleet).items():
        for body in bodies(lines, "action_started"):
            started[f"{session}/{body['proposal_id']}"] += 1
        for body in bodies(lines, "task_committed"):
            committed[str(body["task"])] += 1
        for body in bodies(lines, "task_finished"):
            finished[str(body["task"])] += 1
    assert max(started.values()) == 1, [name for name, count in started.items() if count > 1]
    for counted in (committed, finished):
        wrong = {
            task: counted[task]
            for task in {*counted, *scene.all_tasks}
            if counted[task] != 1 or task not in scene.all_tasks
        }
        assert not wrong, f"{wrong}, {fleet.happened}: {fleet.rows(_HEADS)}"


def _journals(fleet: Fleet) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each session as the database has them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for session, line in fleet.rows("SELECT session, line FROM agent_lines ORDER BY session, seq"):
        found.setdefault(str(session), []).append(json.loads(line))
    return found


def check_machines(fleet: Fleet) -> None:
    """Fail if a worker met a defect, left a process behind, or changed a checkout."""
    assert "Traceback" not in fleet.logs()
    for each in (*fleet.killed, *fleet.running.values()):
        assert each.survivors() == []
    for machine in (fleet.scene.person, *fleet.scene.workers.values()):
        assert machine.git(clone_of(machine), "status", "--porcelain", "--", ":!memory") == ""
        assert machine.git(clone_of(machine), "rev-parse", "--abbrev-ref", "HEAD") == "main"
