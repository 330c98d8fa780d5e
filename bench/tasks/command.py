"""`python -m bench tasks`: agents on public task sets. What is done is stored at once and never done again."""

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from msgspec import json as msgspec_json

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.core.settings.models import ServingSettings
from bench.tasks.agents import Agent, Aider, Attempt, Conditions, MiniSweAgent, Ours
from bench.tasks.bed import Bed, Check
from bench.tasks.cases import TaskCase
from bench.tasks.proxy import CountingProxy
from bench.tasks.results import Row, Store, reasons, summary, tokens
from bench.tasks.selection import SETS, exercise_name, possible_cases, read_cases, select
from bench.tasks.table import table

_START_SECONDS = 600


def main(arguments: Sequence[str]) -> int:
    """Run the missing attempts, and print the table of all that were asked for."""
    given = _parser().parse_args(arguments)
    cases, commit = read_cases(given.source)
    for other in given.exclude_source or ():
        names = {exercise_name(case.id) for case in read_cases(other)[0]}
        cases = [case for case in cases if exercise_name(case.id) not in names]
    # Of commits nobody knows it before, and a sample has to be one of tasks.
    if given.source.startswith("history:"):
        named = select(cases, 0, 0, (), given.task or ())
        cases = possible_cases(named, _check(given), given.out / "possible.json")
    chosen = select(cases, given.sample, given.seed, given.exclude_sample or (), given.task or ())
    if given.verify:
        chosen = possible_cases(chosen, _check(given), given.out / "possible.json")
    if given.list:
        print("\n".join(case.id for case in chosen))
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    store = Store(given.out / "rows.jsonl")
    agents = [_agent(name, given) for name in given.agents.split(",")]
    runs = {agent.name: _run_id(agent, given, commit) for agent in agents}
    if not given.report:
        # So that neither the agent of the moment nor the server outlives this process.
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        _attempt_all(given, chosen, agents, runs, store)
        signal.signal(signal.SIGTERM, before)
    wanted = {case.id for case in chosen}
    rows = [row for row in store.rows() if row.run == runs.get(row.agent) and row.task in wanted]
    if given.json:
        sys.stdout.buffer.write(msgspec_json.format(msgspec_json.encode(summary(rows)), indent=2) + b"\n")
    else:
        print(table(rows))
    return 0


def _attempt_all(
    given: argparse.Namespace, cases: Sequence[TaskCase], agents: Sequence[Agent], runs: dict[str, str], store: Store
) -> None:
    done = {(row.run, row.task) for row in store.rows()}
    missing = [(case, agent) for case in cases for agent in agents if (runs[agent.name], case.id) not in done]
    if not missing:
        return
    began = time.monotonic()
    with _served(given) as (url, key), CountingProxy(url, key, _sampling(given)) as proxy:
        for number, (case, agent) in enumerate(missing):
            _say(f"{number + 1} of {len(missing)}: {case.id} by {agent.name}{_left(began, number, len(missing))}")
            row = _attempt(given, case, agent, runs[agent.name], proxy)
            store.add(row)
            result = "solved" if row.solved else row.why[0]
            _say(f"  {result}, {row.seconds:.0f} s, {row.read} tokens read, {row.written} written")


def _attempt(given: argparse.Namespace, case: TaskCase, agent: Agent, run: str, proxy: CountingProxy) -> Row:
    conditions = Conditions(_check(given), given.table == "alike", given.tries, given.seconds, given.context)
    with tempfile.TemporaryDirectory(prefix="bench-task-") as name:
        bed = Bed(Path(name) / "bed", case)
        load = os.getloadavg()[0]
        proxy.wait()
        attempt = agent.attempt(bed, proxy, conditions)
        verdicts = {tree: bed.grade(tree, conditions.check) for tree in {change.tree for change in attempt.changes}}
        passed = tuple(verdicts[change.tree] for change in attempt.changes)
        last = attempt.changes[-1].tree if attempt.changes else bed.base
        touched, places, wanted = bed.touched_tests(last), bed.places(last), bed.places(bed.solution)
        shown = bool(attempt.exchanges) and bed.stands_in(attempt.exchanges[0].text)
        _keep(given.out / "kept" / run / case.id, bed, attempt)
    solved = bool(passed) and passed[-1] and attempt.kept
    in_tries = [ok for ok, change in zip(passed, attempt.changes, strict=True) if change.answer <= given.tries]
    return Row(
        run=run,
        source=given.source.partition(":")[0],
        task=case.id,
        agent=agent.name,
        version=agent.version(),
        model=_model_name(given),
        table=given.table,
        first=passed[:1] == (True,),
        within=any(in_tries),
        solved=solved,
        why=() if solved else reasons(attempt),
        answers=attempt.answers,
        malformed=attempt.malformed,
        refused=attempt.refused,
        **tokens(attempt.exchanges),
        seconds=round(attempt.ended.seconds, 2),
        model_seconds=round(sum(each.seconds for each in attempt.exchanges), 2),
        passed=passed,
        answers_at=tuple(change.answer for change in attempt.changes),
        touched=tuple(touched),
        shown=shown,
        right_file=bool({path for path, _ in places} & {path for path, _ in wanted}),
        right_function=bool(places & wanted),
        end=attempt.end or f"exit code {attempt.ended.code}",
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        load=load,
    )


def _keep(folder: Path, bed: Bed, attempt: Attempt) -> None:
    """Store requests, answers and output of an attempt, for a person to read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.txt").write_text(attempt.ended.output)
    (folder / "requests.json").write_bytes(msgspec_json.format(msgspec_json.encode(attempt.exchanges), indent=1))
    for journal in bed.repo.glob("memory/sessions/*"):
        shutil.copytree(journal, folder / "session", dirs_exist_ok=True)
    if attempt.changes:
        (folder / "change.diff").write_bytes(bed.difference(attempt.changes[-1].tree))


@contextmanager
def _served(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Give address and key of the server: the one at `--url`, or our own that serves `--model` until the end."""
    if given.url:
        yield given.url, os.environ.get("BENCH_API_KEY", "")
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="model-server", daemon=True)
    serving = ServingSettings(given.context)
    server = EmbeddedServer(given.model, log=given.out / "server" / "server.log", environ=os.environ, serving=serving)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result(_START_SECONDS)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def _agent(name: str, given: argparse.Namespace) -> Agent:
    kind, _, variant = name.partition(":")
    if kind == "ours":
        settings = yaml.safe_load(given.settings.read_text()) if given.settings else {}
        return Ours(given.ours, settings or {}, name)
    if kind == "aider" and variant in {"", "whole", "diff", "bare"}:
        return Aider(
            name, given.peers / "aider/bin/python", "diff" if variant == "diff" else "whole", bare=variant == "bare"
        )
    if name == "mini-swe-agent":
        return MiniSweAgent(name, given.peers / "mini-swe-agent/bin/python", unconfined=given.unconfined)
    raise SystemExit(f"{name} is no agent; write ours, aider, aider:diff, aider:bare or mini-swe-agent")


def _run_id(agent: Agent, given: argparse.Namespace, commit: str) -> str:
    """Return the name of the configuration: two runs of the same name are the same measurement."""
    facts = [given.source.partition(":")[0], commit, agent.version(), _model_name(given), given.table]
    facts += [given.tries, given.seconds, given.context, given.check_seconds, _sampling(given)]
    return f"{agent.name.replace(':', '-')}-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:10]}"


def _model_name(given: argparse.Namespace) -> str:
    return given.url or f"{given.model.name} ({given.model.stat().st_size:,} bytes)"


def _sampling(given: argparse.Namespace) -> dict[str, Any]:
    if given.temperature is not None:
        return {"temperature": given.temperature}
    return {"temperature": 0} if given.table == "alike" else {}


def _check(given: argparse.Namespace) -> Check:
    return Check(given.python, given.check_seconds)


def _left(began: float, done: int, number: int) -> str:
    if not done:
        return ""
    seconds = (time.monotonic() - began) / done * (number - done)
    return f", about {seconds / 60:.0f} min left"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _sample(text: str) -> tuple[int, int]:
    number, _, seed = text.partition(":")
    return int(number), int(seed or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench tasks", description="Compare coding agents on public task sets.")
    add = parser.add_argument
    add("--source", required=True, metavar="SET:FOLDER", help=f"a set ({', '.join(SETS)}) and a clone of it")
    add("--agents", default="ours", metavar="NAME,...", help="ours, aider, aider:diff, aider:bare, mini-swe-agent")
    add("--model", type=lambda text: Path(text).expanduser(), metavar="FILE", help="a GGUF file to serve")
    add("--url", default="", help="a running server in its place; BENCH_API_KEY is its key")
    add("--peers", type=Path, metavar="FOLDER", help="folder with a virtual environment for each peer, of its name")
    add("--ours", type=Path, default=Path(sys.executable).parent / "agent", metavar="FILE", help="the command `agent`")
    add("--settings", type=Path, metavar="FILE", help="settings of ours besides those that it needs, as YAML")
    add("--table", choices=("alike", "used"), default="alike", help="the same for all, or each as it is used")
    add("--tries", type=int, default=2, metavar="N", help="answers that an agent has, in the table alike")
    add("--seconds", type=int, default=600, help="the most for one attempt")
    add("--check-seconds", type=int, default=30, help="the most for one run of the check")
    add("--context", type=int, default=16384, metavar="TOKENS", help="context of the server")
    add("--temperature", type=float, help="of every request (alike: 0, used: what the agent sends)")
    add("--sample", type=int, default=0, metavar="N", help="a random sample of the tasks")
    add("--seed", type=int, default=0, help="seed of the sample")
    add("--exclude-sample", type=_sample, action="append", metavar="N:SEED", help="no task of this sample")
    add("--exclude-source", action="append", metavar="SET:FOLDER", help="no exercise that this set has too")
    add("--task", action="append", metavar="NAME", help="this task (may be given more than once)")
    add("--python", default=sys.executable, metavar="FILE", help="interpreter of the checks, with pytest")
    add("--out", type=Path, default=Path("build/bench-tasks"), metavar="FOLDER", help="results and transcripts")
    add("--report", action="store_true", help="print what is stored, and run nothing")
    add("--json", action="store_true", help="print the summary as JSON")
    add("--list", action="store_true", help="print the chosen tasks, and run nothing")
    add("--verify", action="store_true", help="leave out what the known solution does not solve (always: history)")
    add("--unconfined", action="store_true", help="run commands of a model although bubblewrap is not installed")
    return parser
