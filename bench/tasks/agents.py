"""Agents that are compared: each does a task in its bed, as its users run it."""

import hashlib
import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from bench.tasks.bed import SHOWN_LINES, Bed, Check, Ended, run_program
from bench.tasks.cases import TaskCase
from bench.tasks.proxy import CountingProxy, Exchange

MODEL = "local"


class Conditions(Struct, frozen=True):
    """What all agents of a run share.

    `alike`: each is shown the failing output at first, and has `tries` answers. Else each does as it does for its
    users, for the same `seconds`.
    """

    check: Check
    alike: bool = True
    tries: int = 2
    seconds: int = 600
    context_tokens: int = 16384


class Change(Struct, frozen=True):
    """State of the repository after the answer of this number, counted from 1."""

    answer: int
    tree: str


class Attempt(Struct):
    """What an agent did. Without `kept`, it took its last change back; `repetitions` are answers that it stopped."""

    ended: Ended
    changes: list[Change] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    answers: int = 0
    malformed: int = 0
    refused: int = 0
    repetitions: int = 0
    kept: bool = True
    end: str = ""


class Agent(Protocol):
    """An agent. `name` is the one in the reports."""

    name: str

    def version(self) -> str:
        """Return its version; raise `SystemExit` if it is not installed."""
        ...

    def attempt(self, bed: Bed, proxy: CountingProxy, conditions: Conditions) -> Attempt:
        """Do the task."""
        ...


class Ours:
    """The workbench, by its command `program`, with `settings` besides those that `agent init` writes."""

    def __init__(self, program: Path, settings: Mapping[str, Any], name: str = "ours") -> None:
        self.name = name
        self._program = program
        self._settings = settings

    def version(self) -> str:
        """Return a digest of the package's files and of the settings."""
        python = self._program.parent / "python"
        code = "import agent_workbench, sys; sys.stdout.write(agent_workbench.__file__)"
        said = subprocess.run([python, "-P", "-c", code], capture_output=True, text=True, check=False)
        if said.returncode:
            raise SystemExit(f"{self._program} is no command of the workbench: {said.stderr.strip()}")
        digest = hashlib.sha256(json.dumps(self._settings, sort_keys=True).encode())
        package = Path(said.stdout).parent
        for path in sorted([*package.rglob("*.py"), *package.parents[1].glob("skills/**/*.md")]):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:12]

    def attempt(self, bed: Bed, proxy: CountingProxy, conditions: Conditions) -> Attempt:
        """Run `agent run WORDS --yes`."""
        settings = {
            "model": {"url": proxy.url},
            "python": conditions.check.python,
            "test_command": conditions.check.plain(bed.case),
            "limits": {"command_seconds": conditions.check.seconds},
        }
        (bed.repo / ".agent.yml").write_text(json.dumps(_merged(settings, self._settings), indent=1))
        environment = bed.environment(conditions.check)
        trusted = run_program((str(self._program), "trust", "--yes"), bed.repo, environment, 60)
        if trusted.code:
            raise SystemExit(f"`agent trust --yes` failed: {trusted.output.strip()}")
        proxy.take()
        words = (str(self._program), "run", bed.case.words, "--yes", "--unconfined")
        ended = run_program(words, bed.repo, environment, conditions.seconds)
        attempt = Attempt(ended, exchanges=proxy.take())
        for journal in bed.repo.glob("memory/sessions/*/journal.jsonl"):
            read_journal(journal, attempt)
        return attempt


def read_journal(journal: Path, attempt: Attempt) -> None:
    """Add what a journal says to an attempt."""
    for line in journal.read_bytes().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a torn last line
        kind, body = event["kind"], event["body"]
        if kind in {"model_answered", "model_interrupted"}:
            attempt.answers += 1
            attempt.repetitions += body.get("cause") == "repetition"
            # What the end of the time interrupted was not finished, and not malformed.
            attempt.malformed += kind == "model_interrupted" and body.get("cause") != "stopped"
        elif kind == "action_rejected":
            # A rewriting that repeats the old text is in form, as with an agent that sends files; one in part is not.
            in_part = any(each in body["reason"] for each in (" leaves text out", " lost "))
            attempt.malformed += in_part or not (body.get("empty_finish", False) or body.get("again", False))
        elif kind == "patch_applied":
            attempt.changes.append(Change(attempt.answers, body["tree"]))
            attempt.kept = True
        elif kind == "action_finished":
            attempt.refused += body["result"] == "refused"
        elif kind == "task_rolled_back":
            attempt.kept = False
        elif kind == "task_finished":
            attempt.end = f"{body['status']}: {body['reason']}"
        elif kind == "trouble_met":
            attempt.end = f"trouble: {body['what']}"


class Peer:
    """Base of agents that change the work tree themselves: a snapshot before each request finds the changes."""

    beside: tuple[str, ...] = ()
    """Beginnings of prompts that ask for no step of the work, such as for a summary."""

    def __init__(self, name: str, python: Path) -> None:
        self.name = name
        self._python = python

    def _observed(
        self, argv: list[str], bed: Bed, proxy: CountingProxy, conditions: Conditions, more: Mapping[str, str]
    ) -> Attempt:
        states = [bed.base]
        changes: list[Change] = []

        def answers(exchanges: Sequence[Exchange]) -> int:
            return sum(not each.begins(*self.beside) for each in exchanges)

        def note(exchanges: Sequence[Exchange]) -> None:
            if (tree := bed.snapshot()) != states[-1]:
                states.append(tree)
                changes.append(Change(answers(exchanges), tree))

        proxy.take()
        proxy.on_request = note
        try:
            environment = {**bed.environment(conditions.check), **more}
            ended = run_program(argv, bed.repo, environment, conditions.seconds)
        finally:
            proxy.on_request = lambda earlier: None
        exchanges = proxy.take()
        note(exchanges)
        return Attempt(ended, changes, exchanges, answers=answers(exchanges))

    def _installed(self, package: str) -> str:
        code = f"import importlib.metadata as m, sys; sys.stdout.write(m.version({package!r}))"
        try:
            said = subprocess.run([self._python, "-c", code], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"{package} is not installed for {self._python}; see --peers") from error
        return said.stdout


class Aider(Peer):
    """aider with one of its edit formats. `bare`: as in its leaderboard, without the test and its output at first."""

    beside = ("*Briefly* summarize", "You are an expert software engineer that generates concise")

    def __init__(self, name: str, python: Path, edit_format: str, *, bare: bool = False) -> None:
        super().__init__(name, python)
        self._format = edit_format
        self._bare = bare

    def version(self) -> str:
        """Return the version of the package."""
        return self._installed("aider-chat")

    def attempt(self, bed: Bed, proxy: CountingProxy, conditions: Conditions) -> Attempt:
        """Run aider with the words as its message; it runs the check after each of its edits."""
        case = bed.case
        metadata = {"max_input_tokens": conditions.context_tokens, "max_output_tokens": conditions.context_tokens}
        facts = {**metadata, "max_tokens": conditions.context_tokens, "litellm_provider": "openai", "mode": "chat"}
        (bed.home / "model.json").write_text(
            json.dumps({f"openai/{MODEL}": {**facts, "input_cost_per_token": 0, "output_cost_per_token": 0}})
        )
        message = case.words
        if conditions.alike and not self._bare:
            message += failing_output(bed, conditions)
        script = bed.home / "check.sh"
        script.write_text(
            f"said=$({conditions.check.bounded(case)} 2>&1)\ncode=$?\n"
            f"printf '%s\\n' \"$said\" | head -n {SHOWN_LINES}\nexit $code\n"
        )
        order = {
            "argv": [*self._arguments(bed, proxy, conditions), "--test-cmd", f"sh {shlex.quote(str(script))}"],
            "message": message,
            "reflections": conditions.tries - 1 if conditions.alike else None,
            "report": str(bed.home / "aider.json"),
        }
        driver = Path(__file__).with_name("aider_driver.py")
        more = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none", "PYTHONDONTWRITEBYTECODE": "1"}
        attempt = self._observed([str(self._python), str(driver), json.dumps(order)], bed, proxy, conditions, more)
        try:
            said = json.loads((bed.home / "aider.json").read_text())
        except (OSError, ValueError):
            said = {}
        attempt.malformed = said.get("malformed", 0)
        attempt.end = said.get("end", "")
        return attempt

    def _arguments(self, bed: Bed, proxy: CountingProxy, conditions: Conditions) -> list[str]:
        home = bed.home
        arguments = [
            *("--model", f"openai/{MODEL}", "--openai-api-base", f"{proxy.url}/v1", "--edit-format", self._format),
            *("--model-metadata-file", str(home / "model.json"), "--env-file", str(home / "none.env")),
            *("--chat-history-file", str(home / "chat.md"), "--input-history-file", str(home / "input")),
            *("--llm-history-file", str(home / "llm.txt")),
            *("--yes-always", "--auto-test", "--no-pretty", "--no-gitignore", "--no-check-update"),
            *("--analytics-disable", "--no-show-model-warnings", "--no-show-release-notes", "--no-detect-urls"),
            *("--no-suggest-shell-commands", "--timeout", str(conditions.seconds)),
        ]
        if conditions.alike:
            arguments += ["--no-auto-commits", "--no-auto-lint"]
        if not bed.case.edits:
            # Without it a model that aider does not know gets no map of the repository to choose files from.
            arguments += ["--map-tokens", "1024"]
        for path in bed.case.edits:
            arguments += ["--file", path]
        if conditions.alike and not self._bare and bed.case.edits:
            for path in shown_tests(bed.case):
                arguments += ["--read", path]
        return arguments


class MiniSweAgent(Peer):
    """mini-swe-agent with its text-based configuration. It runs the commands that the model writes.

    With bubblewrap they write nowhere but in the bed; without it they have to be allowed (`unconfined`).
    """

    def __init__(self, name: str, python: Path, *, unconfined: bool) -> None:
        super().__init__(name, python)
        self._unconfined = unconfined

    def version(self) -> str:
        """Return the version of the package."""
        return self._installed("mini-swe-agent")

    def attempt(self, bed: Bed, proxy: CountingProxy, conditions: Conditions) -> Attempt:
        """Run `mini --yolo` with the words and the command line of the check, which it has no option for."""
        check = conditions.check.bounded(bed.case)
        words = f"{bed.case.words}\n\nThis command has to pass: `{check}`"
        if conditions.alike:
            words += failing_output(bed, conditions)
        model = {
            "model_kwargs": {"api_base": f"{proxy.url}/v1", "api_key": "none", "timeout": conditions.seconds},
            "cost_tracking": "ignore_errors",
        }
        overlay = bed.home / "bench.yaml"
        overlay.write_text(json.dumps({"model": model, "environment": {"timeout": conditions.check.seconds + 15}}))
        argv = [
            *(str(self._python.parent / "mini"), "--yolo", "--exit-immediately", "--cost-limit", "0"),
            *("--config", "mini_textbased.yaml", "--config", str(overlay), "--model", f"openai/{MODEL}"),
            *("--model-class", "litellm_textbased", "--output", str(bed.home / "trajectory.json"), "--task", words),
        ]
        more = {
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "MSWEA_CONFIGURED": "true",
            "MSWEA_GLOBAL_CONFIG_DIR": str(bed.home / "mini"),
        }
        attempt = self._observed([*self._sandbox(bed), *argv], bed, proxy, conditions, more)
        attempt.malformed = sum(each.answer.count("```mswea_bash_command") != 1 for each in attempt.exchanges)
        return attempt

    def _sandbox(self, bed: Bed) -> list[str]:
        if (bubblewrap := shutil.which("bwrap")) is None:
            if not self._unconfined:
                raise SystemExit("bubblewrap is not installed, so a model's commands may do anything: --unconfined")
            return []
        folder = str(bed.folder)
        writable = ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/var/tmp", "--bind", folder, folder]
        return [bubblewrap, "--ro-bind", "/", "/", *writable, "--die-with-parent", "--chdir", str(bed.repo)]


def failing_output(bed: Bed, conditions: Conditions) -> str:
    """Return the paragraph that shows a model how the check fails at first."""
    output = conditions.check.failing_output(bed.case, bed.repo)
    command = bed.case.check.replace("{python}", "python")
    return f"\n\nThe output of `{command}`:\n\n```\n{output}\n```\n"


def shown_tests(case: TaskCase) -> list[str]:
    """Return the tests that the check names."""
    return [path for path in case.tests if path in case.check]


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return `first` with the values of `second`, group by group."""
    merged = dict(first)
    for name, value in second.items():
        known = merged.get(name)
        merged[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged
