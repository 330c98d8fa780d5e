"""Tokens of the prompts of five recorded tasks: as their version wrote them, and as this one would.

The prompts of a journal are rebuilt to the byte, then once more from the same events with what this version records
besides: the map of the repository, its own specs of the tools, and the outcomes of checks in its words.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    CodeRetrieved,
    ContextCompacted,
    Recorded,
    TaskStarted,
    TestsFinished,
)
from agent_workbench.core.fold import fold
from agent_workbench.core.proposals import CHECKS
from agent_workbench.core.repo.repo_map import map_repo
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.prompt.prompt_text import VERSION, user_change_note
from agent_workbench.engine.prompt.repeated_lines import change_shown
from agent_workbench.engine.rerun import RecordedPrompt, messages_of, prompts_of
from agent_workbench.engine.tools.check_runs import HEADINGS, code_text, describe_checks
from agent_workbench.engine.tools.registry import builtin_specs
from bench.figures import Figure
from bench.vocabulary import Count, load

RECORDED = Path(__file__).parents[1] / "tests" / "e2e" / "recorded" / "v0.1"
TASKS = ("two-tasks-and-a-fork", "hunk-left-out", "limit-reached", "summarised", "rejected-then-merged")
ABOUT_CHARS = 6_000


def measure(tasks: int = len(TASKS)) -> list[Figure]:
    """Return the tokens of the first, the largest and all prompts of each task, before and after."""
    name, count = load()
    print(f"counted with {name}", file=sys.stderr)
    sessions = [each.split("/") for each in json.loads((RECORDED / "expected.json").read_text())]
    figures: list[Figure] = []
    for archive in TASKS[:tasks]:
        session = next(session for each, session in sessions if each == archive)
        with tempfile.TemporaryDirectory(prefix="bench-tokens-") as folder:
            with tarfile.open(RECORDED / f"{archive}.tar.gz") as packed:
                packed.extractall(folder, filter="data")
            repo = Path(folder) / archive
            events = read_journal(repo / "memory" / "sessions" / session).events
            figures += _figures(archive, events, tuple(_as_now(repo, events)), count)
    return figures


def _figures(name: str, then: Sequence[Recorded], now: Sequence[Recorded], count: Count) -> Iterator[Figure]:
    before, after = ([_tokens(each, count) for each in prompts_of(events)] for events in (then, now))
    for said, old, new in (
        ("rules", _rules(then, count), _rules(now, count)),
        ("first prompt", before[0], after[0]),
        ("largest prompt", max(before), max(after)),
        (f"all {len(before)} prompts", sum(before), sum(after)),
    ):
        yield Figure(f"{name}: {said}, before", old, "tokens")
        yield Figure(f"{name}: {said}, after", new, "tokens")


def _tokens(prompt: RecordedPrompt, count: Count) -> int:
    return sum(count(message.text) for message in messages_of(prompt))


def _rules(events: Sequence[Recorded], count: Count) -> int:
    return count(messages_of(next(prompts_of(events)))[0].text)


def _as_now(repo: Path, events: Sequence[Recorded]) -> Iterator[Recorded]:
    """Yield the events as this version would have recorded them."""
    state, checks, tests = SessionState(), "", None
    for recorded in events:
        event = recorded.event
        match event:
            case TaskStarted():
                specs = builtin_specs(event.tools or tuple(spec.name for spec in event.specs))
                event = replace(event, wording=VERSION, specs=specs)
            case CodeRetrieved() if state.run is not None:
                found = [chunk.path for chunk in event.chunks]
                paths = _paths(repo, state.run.workspace.base)
                command = next(iter(state.run.checks), "")
                event = replace(event, map=map_repo(paths, found, state.run.definition.description, command))
            case ActionProposed(proposal=proposal):
                checks = proposal.id if proposal.tool == CHECKS else ""
            case TestsFinished():
                tests = event
            case ActionFinished() if event.proposal_id == checks and tests is not None and state.run is not None:
                shown = change_shown(state.run.history)
                baseline = state.run.baseline if tests.purpose != "baseline" else None
                told = describe_checks(tests, baseline, shown, state.run.workspace.path)
                shown_with = state.gate.proposal
                note = user_change_note(shown_with) if shown_with is not None else ""
                text = note + "\n\n".join((HEADINGS.get(tests.purpose, "") + told, *code_text(event.shown)))
                event = replace(event, observation=text)
            case ContextCompacted():
                event = replace(event, about_chars=ABOUT_CHARS)
            case _:
                pass
        now = replace(recorded, event=event)
        state = fold(state, now)
        yield now


def _paths(repo: Path, base: str) -> list[str]:
    listed = subprocess.run(
        ["git", "-C", str(repo), "ls-tree", "-r", "-z", "--name-only", base], capture_output=True, text=True, check=True
    )
    own = ("memory/", ".agent.yml")
    return [path for path in listed.stdout.split("\0") if path and not path.startswith(own)]
