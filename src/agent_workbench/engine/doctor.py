"""Checks of `agent doctor`: each part is tried for real, programs are searched, and each problem comes with advice.

An interpreter in the user's checkout is not run either: the repository may have brought it.
"""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing

from agent_workbench.core.command_lines import programs_of
from agent_workbench.core.consult_requests import EndpointTier
from agent_workbench.core.diagnostics import Finding, Health, endpoint_named, tier_of_label
from agent_workbench.core.errors import ModelError, WorkbenchError, nameless_author, partial_clone
from agent_workbench.core.extras import Extra, has_extra, missing_extra
from agent_workbench.core.model import AnswerEnd, Message, ModelRequest, Purpose, Role, TextDelta
from agent_workbench.core.patch.paths import matches_glob
from agent_workbench.core.plan import TaskStatus, check_plan
from agent_workbench.core.ports.tools import ToolSource
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.repo.absent_sources import unlinked
from agent_workbench.core.repo.workspace import Orphan, RepoFacts
from agent_workbench.core.settings import EmbeddingProvider, Settings
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.tools.spec import MCP, select_specs
from agent_workbench.engine.endpoint_findings import context_finding
from agent_workbench.engine.runtime.tool_context import Ports
from agent_workbench.engine.task.task_start import named, submodule_advice, without_own_files

GRAMMAR_SENTENCE = "yes"
RUNNING_SECONDS = 60.0
SEEN_CHARS = 400
INSTALL = "install it where commands find it, or change {}"
FINISHED = frozenset({TaskStatus.DONE, TaskStatus.FAILED})
SERVER_SECONDS = 60.0
TRUST_ADVICE = "`agent trust` shows what the repo would run; until then nothing of it is obeyed"

LOOK_SECONDS = 30.0
# Modules are found, not imported; `-I` ignores a `sitecustomize` of the repo.
_HAS_MODULE = """\
import importlib.machinery, importlib.util, sys
name = sys.argv[1].partition(".")[0]
found = importlib.util.find_spec(name) or importlib.machinery.PathFinder.find_spec(name, [".", "src"])
sys.exit(found is None)"""


async def examine(ports: Ports, settings: Settings, said: Settings, model_log: str) -> tuple[Finding, ...]:
    """Check every part; an error in one part becomes its finding and stops nothing else.

    `settings` are in force; `said` also contain the repo's untrusted values.
    """
    servers = [source for source in ports.tool_sources if source.name.startswith(MCP)]
    findings = [
        *await _findings_or_error("repository", lambda: _repository(ports, settings)),
        *await _findings_or_error("plan", lambda: _plan(ports)),
        *await _findings_or_error("tests", lambda: _tests(ports, settings, said)),
        *await _findings_or_error("sandbox", lambda: _sandbox(ports, settings)),
        *_vectors(settings),
        *await _findings_or_error("hooks", lambda: _hooks(ports, settings)),
        *await asyncio.gather(*(examine_source(source) for source in servers)),
        *await _findings_or_error("model", lambda: _model(ports, settings, said, model_log)),
    ]
    return tuple(findings)


def examine_settings(
    origins: Mapping[str, str], unused: Mapping[str, str], untrusted: Sequence[str], left_out: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return the settings in force with their origins, and those without effect.

    `unused` are the settings of files that a source of higher priority replaces, with their origins; `untrusted` are
    the names of ignored ones; `left_out` tells which servers of `.mcp.json` cannot be used.
    """
    findings = [Finding("settings", Health.GOOD, "; ".join(_origin_lines(origins)) or "all at their defaults")]
    if unused:
        findings.append(Finding("replaced", Health.GOOD, f"without effect here: {'; '.join(_origin_lines(unused))}"))
    if untrusted:
        seen = f"{_count_are(len(untrusted), 'setting')} not trusted: {named(untrusted)}"
        findings.append(Finding("trust", Health.WARNING, seen, TRUST_ADVICE))
    findings += [Finding("mcp", Health.WARNING, each, "correct it, or remove it") for each in left_out]
    return tuple(findings)


def _origin_lines(origins: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys set by each file, variable and flag; a group with a single origin is named once."""
    where = {key: re.sub(r":\d+$", "", origin) for key, origin in origins.items() if origin != "default"}
    groups = {key: {place for other, place in where.items() if _group(other) == _group(key)} for key in where}
    for place in dict.fromkeys(where.values()):
        keys = (key if len(groups[key]) > 1 else _group(key) for key in where if where[key] == place)
        yield f"{', '.join(dict.fromkeys(keys))} ({place})"


def _group(key: str) -> str:
    return key.split(".", 1)[0]


def _count_are(many: int, what: str) -> str:
    return f"{counted_text(many, what)} {'is' if many == 1 else 'are'}"


async def _findings_or_error(part: str, check: Callable[[], Awaitable[Sequence[Finding]]]) -> Sequence[Finding]:
    try:
        return await check()
    except WorkbenchError as error:
        return [Finding(part, Health.BAD, str(error), error.advice)]


async def _repository(ports: Ports, settings: Settings) -> Sequence[Finding]:
    facts = await ports.workspaces.inspect()
    at = f"at {facts.head[:10]}"
    findings = [Finding("repository", Health.GOOD, f"{facts.root} on {facts.branch} {at}")]
    if not facts.branch:
        advice = "a merge would be on no branch; `git switch BRANCH` first"
        findings = [Finding("repository", Health.WARNING, f"{facts.root} with a detached HEAD {at}", advice)]
    if facts.left:
        seen = f"{facts.root} looks like the repository that was at {facts.left}, whose sessions and worktrees are kept"
        advice = "if you copied it here: `agent sessions take-over` continues them, with --leave it starts without them"
        findings.append(Finding("repository", Health.WARNING, seen, advice))
    if facts.copy_of:
        seen = f"{facts.root} is a copy of {facts.copy_of}"
        findings.append(Finding("repository", Health.WARNING, seen, "sessions that were begun there go on there alone"))
    if changed := without_own_files((*facts.dirty_paths, *facts.untracked_paths), settings.memory.dir):
        seen = f"{_count_are(len(changed), 'file')} changed and not committed: {named(changed)}"
        findings.append(Finding("checkout", Health.WARNING, seen, "tasks start from HEAD; commit what they need"))
    findings += await _findings_or_error("links", lambda: _links(ports, settings, facts))
    findings += _own_git(facts)
    for each in await ports.workspaces.orphans():
        findings.append(Finding("branch", Health.WARNING, _orphan_seen(each), _orphan_advice(each)))
    return findings


async def _links(ports: Ports, settings: Settings, facts: RepoFacts) -> Sequence[Finding]:
    """Return findings about what a workspace lacks of the checkout: what cannot be linked, and empty submodules."""
    wanted = settings.workspace.link
    checkout = await ports.workspaces.checkout_files()
    linked = await checkout.linkable(wanted)
    findings = []
    if gone := unlinked(wanted, linked):
        seen = f"not in the checkout, so not linked: {named(gone)}"
        findings.append(Finding("links", Health.WARNING, seen, "make it, or remove it from workspace.link"))
    absent = unlinked(await checkout.absent_sources(), linked)
    if ignored := tuple(each for each in absent if each not in facts.submodules):
        seen = f"ignored files beside the code, which a task's workspace lacks: {named(ignored)}"
        advice = f"if the tests need them: workspace.link: [{', '.join((*wanted, *ignored))}]"
        findings.append(Finding("ignored", Health.WARNING, seen, advice))
    if empty := unlinked(facts.submodules, linked):
        seen = f"empty in a task's workspace: {named(empty)}"
        findings.append(Finding("submodules", Health.WARNING, seen, submodule_advice(empty)))
    return findings


def _own_git(facts: RepoFacts) -> Iterator[Finding]:
    """Yield findings about what the user's own git does and the workbench does not."""
    git = facts.own_git
    for part, fails, error in (
        ("author", git.nameless, nameless_author()),
        ("clone", git.lacks_objects, partial_clone()),
    ):
        if fails:
            yield Finding(part, Health.BAD, str(error), error.advice)
    if git.left_out:
        advice = "the gate of a merge names the command that merges by your own git"
        yield Finding("commits", Health.WARNING, git.left_out, advice)
    if facts.filtered:
        names = ", ".join(dict.fromkeys(name for _, name in facts.filtered))
        many = counted_text(len(facts.filtered), "file")
        seen = f"{many} of the filter {names}, such as {facts.filtered[0][0]}"
        advice = "a task sees the stored text of them (a pointer, or encrypted): tests that need their content fail"
        yield Finding("filters", Health.WARNING, seen, advice)


def _orphan_seen(orphan: Orphan) -> str:
    if orphan.session is None:
        return f"{orphan.branch}: no session began a task on it"
    branch = orphan.branch if orphan.has_branch else f"{orphan.branch}, which is no branch any more,"
    what = f"{branch} and its worktree {orphan.path}" if orphan.path else branch
    holds = f"it holds {orphan.holds}" if orphan.holds else "there is no work in it"
    return f"{what}: made for {orphan.task}, which session {orphan.session} never began; {holds}"


def _orphan_advice(orphan: Orphan) -> str:
    if orphan.task and not orphan.holds:
        return f"it is removed when {orphan.task} is started"
    if not orphan.has_branch:
        return f"look into it; when you no longer need it: rm -rf {shlex.quote(orphan.path)}"
    tree = f"git worktree remove --force {shlex.quote(orphan.path)} && " if orphan.path else ""
    shown = f"`git log {shlex.quote(orphan.branch)}` shows it"
    return f"{shown}; when you no longer need it: {tree}git branch -d {shlex.quote(orphan.branch)}"


async def _plan(ports: Ports) -> Sequence[Finding]:
    plan = await ports.plans.read()
    if problems := check_plan(plan):
        return [Finding("plan", Health.BAD, "; ".join(problems), f"edit {ports.plans.path}")]
    accepted = {line: task.id for task in plan.tasks if task.status not in FINISHED for line in task.accept_tests}
    # A task may write the scripts it is accepted by.
    missing = await missing_programs(ports, tuple(accepted), installed_only=True)
    if missing:
        told = "; ".join(f"{program} is not installed ({accepted[line]}: {line})" for line, program in missing.items())
        return [Finding("plan", Health.WARNING, told[:SEEN_CHARS], INSTALL.format("accept_tests"))]
    return [Finding("plan", Health.GOOD, f"{counted_text(len(plan.tasks), 'task')} in {ports.plans.path}")]


async def _tests(ports: Ports, settings: Settings, said: Settings) -> Sequence[Finding]:
    facts = await ports.workspaces.inspect()
    environment = await ports.environment_for(facts.root)
    python = environment.get("PATH", "").split(":", 1)[0]
    findings = [Finding("tests", Health.GOOD, f"programs come first from {python}")]
    findings += [
        *await _command(ports, "test_command", settings.test_command, said.test_command),
        *await _command(ports, "lint_command", settings.lint_command, said.lint_command),
    ]
    if not said.test_command and not await _all_accepted(ports):
        advice = "set test_command in .agent.yml, or give each task accept_tests"
        findings.append(Finding("test_command", Health.WARNING, "no test command is set", advice))
    compiled = [path for path in facts.untracked_paths if matches_glob(path, "**/*.so")]
    if compiled:
        seen = f"compiled extensions are not in git: {compiled[0]}"
        findings.append(Finding("extensions", Health.WARNING, seen, "link them with workspace.link"))
    return findings


async def _all_accepted(ports: Ports) -> bool:
    """Return True if there are open tasks and each has acceptance tests; False if the plan cannot be read."""
    try:
        plan = await ports.plans.read()
    except WorkbenchError:
        return False
    left = [task for task in plan.tasks if task.status not in FINISHED]
    return bool(left) and all(task.accept_tests for task in left)


async def _command(ports: Ports, key: str, line: str, said: str) -> Sequence[Finding]:
    """Return a finding about the program of a trusted command, nothing if there is none.

    The finding about trust names the others.
    """
    if said != line or not line:
        return []
    if missing := (await missing_programs(ports, (line,))).get(line):
        return [Finding(key, Health.BAD, f"{missing} is not installed: {line}", INSTALL.format(f"{key} in .agent.yml"))]
    return [Finding(key, Health.GOOD, line)]


async def _sandbox(ports: Ports, settings: Settings) -> Sequence[Finding]:
    facts = await ports.shell.observe()
    if facts.holds:
        network = "network open" if facts.network else "no network"
        findings = [Finding("sandbox", Health.GOOD, f"{facts.kind} confines tests and commands, {network}")]
        # A Python environment is only read.
        written = [each for each in settings.workspace.link if not each.removesuffix("/").endswith("venv")]
        if not await ports.shell.copies(written):
            seen = f"commands cannot write to what is linked ({named(written)}): bubblewrap makes no overlay here"
            advice = "bubblewrap 0.11 or newer; or make the caches, such as node_modules/.cache: they appear empty then"
            findings.append(Finding("links", Health.WARNING, seen, advice))
        return findings
    return [Finding("sandbox", Health.WARNING, "commands are not confined", facts.why)]


def _vectors(settings: Settings) -> Sequence[Finding]:
    """Return a finding for vectors that the settings want and this installation cannot keep."""
    if settings.retrieval.embeddings.provider is EmbeddingProvider.NONE or has_extra(Extra.VECTORS):
        return []
    error = missing_extra(Extra.VECTORS)
    return [Finding("vectors", Health.WARNING, f"{error}, so code is searched without them", error.advice)]


async def _hooks(ports: Ports, settings: Settings) -> Sequence[Finding]:
    """Return a finding for each hook in force. None is run: only an event does that."""
    sandbox = (await ports.shell.observe()).holds if settings.hooks else True
    found = []
    for name, hook in settings.hooks:
        seen = f"{name} runs at {', '.join(hook.events)}"
        if sandbox or hook.unconfined:
            how = ", with your rights" if hook.unconfined else ", with the network" if hook.network else ""
            found.append(Finding("hook", Health.GOOD, f"{seen}{how}"))
        else:
            advice = "until a sandbox works, its proposals wait for a person; or set `unconfined: true` in its entry"
            found.append(Finding("hook", Health.WARNING, f"{seen}, and cannot: no sandbox works here", advice))
    return found


async def examine_source(source: ToolSource) -> Finding:
    """Start a server, list its tools, and stop it."""
    try:
        async with asyncio.timeout(SERVER_SECONDS):
            specs = await source.list_tools()
    except TimeoutError:
        return Finding(source.name, Health.BAD, f"no tools within {SERVER_SECONDS:g} s", "`agent mcp test` shows more")
    except WorkbenchError as error:
        return Finding(source.name, Health.BAD, str(error), error.advice)
    finally:
        await source.close()
    unusable = [spec.name for spec, problem in select_specs(specs, ()) if problem]
    seen = counted_text(len(specs), "tool")
    if unusable:
        advice = "`agent mcp test` shows why"
        return Finding(source.name, Health.WARNING, f"{seen}, of which unusable: {named(unusable)}", advice)
    return Finding(source.name, Health.GOOD, seen)


async def _model(ports: Ports, settings: Settings, said: Settings, model_log: str) -> Sequence[Finding]:
    starts = _may_start(settings)
    # The embedded server may have to load a large file; a running server answers at once.
    seconds = settings.model.answer_seconds if starts else min(settings.model.answer_seconds, RUNNING_SECONDS)
    try:
        async with asyncio.timeout(seconds):
            facts = await ports.model.observe()
            findings = [Finding("model", Health.GOOD, f"{facts.model} at {facts.endpoint} {facts.build}".strip())]
            if starts:
                findings.append(Finding("server log", Health.GOOD, model_log))
            findings.append(await _grammar_finding(ports, takes_grammar=facts.takes_grammar))
        # Large prompts take their own time.
        local = tier_of_label(settings, facts.endpoint) is EndpointTier.LOCAL
        findings.append(await context_finding(ports.model, facts, local=local))
        return findings
    except TimeoutError:
        seen = f"no answer within {seconds:g} s"
        return [Finding("model", Health.BAD, seen, f"the server's log: {model_log}" if starts else "look at its log")]
    except ModelError as error:
        if _model_choice(said) != _model_choice(settings):
            return [Finding("model", Health.BAD, f"{error}; the one that is set is not trusted", TRUST_ADVICE)]
        log = f"; the server's log: {model_log}" if starts else ""
        return [Finding("model", Health.BAD, str(error), f"{error.advice}{log}")]


def _model_choice(settings: Settings) -> tuple[object, ...]:
    """Return the settings that choose the model."""
    return settings.model.path, settings.model.url, settings.endpoints, settings.roles


def _may_start(settings: Settings) -> bool:
    """Return True if the embedded server may answer for the executor."""
    named = (endpoint_named(settings, name) for name in settings.chain(Purpose.EXECUTOR))
    return any(each is not None and each.path for each in named)


async def _grammar_finding(ports: Ports, *, takes_grammar: bool) -> Finding:
    if not takes_grammar:
        advice = "answers are checked all the same; llama.cpp's server takes grammars"
        return Finding("grammar", Health.WARNING, "this endpoint takes no grammar", advice)
    request = ModelRequest(
        (Message(Role.USER, "Say yes."),), grammar=f'root ::= "{GRAMMAR_SENTENCE}"\n', answer_tokens=16
    )
    said = ""
    async with aclosing(ports.model.answer(request)) as items:
        async for item in items:
            match item:
                case TextDelta():
                    said += item.text
                case AnswerEnd():
                    break
                case _:
                    pass
    if said == GRAMMAR_SENTENCE:
        return Finding("grammar", Health.GOOD, "the server keeps to a grammar")
    advice = "answers are checked all the same; a newer llama.cpp keeps to grammars"
    return Finding("grammar", Health.WARNING, f"the server answered {said[:40]!r} against its grammar", advice)


async def missing_programs(ports: Ports, lines: Sequence[str], *, installed_only: bool = False) -> Mapping[str, str]:
    """Return the first missing program of each command line that cannot be run.

    Programs are looked for in the user's checkout; with `installed_only` those that a path names are not, nor are they
    behind another program, which may make them (`make tests && ./tests`). Raises `ShellError`, `RepoError`, and
    `ConfigError` without an interpreter.
    """
    wanted = {
        line: [
            each for number, each in enumerate(programs_of(line)) if "/" not in each or not (installed_only or number)
        ]
        for line in lines
    }
    programs = tuple(dict.fromkeys(each for found in wanted.values() for each in found))
    if not programs:
        return {}
    folder = (await ports.workspaces.inspect()).root
    tests = [f"{_look(program)} >/dev/null 2>&1 || echo {number}" for number, program in enumerate(programs)]
    command = Command("\n".join(tests), folder, LOOK_SECONDS, await ports.environment_for(folder))
    outcome = await ports.shell.run(command, lambda _: None)
    missing = {programs[int(each)] for each in outcome.output.split() if each.isdigit() and int(each) < len(programs)}
    return {
        line: next(each for each in found if each in missing) for line, found in wanted.items() if missing & {*found}
    }


def _look(program: str) -> str:
    name, _, module = program.partition(" -m ")
    if not module:
        return f"command -v {shlex.quote(name)}"
    has_module = f'"$python" -I -c {shlex.quote(_HAS_MODULE)} {shlex.quote(module)}'
    return f"""{{
python=$(command -v {shlex.quote(name)}) && folder=$(cd -- "$(dirname -- "$python")" && pwd -P) &&
case $folder/ in "$(pwd -P)"/*) ;; *) {has_module} ;; esac; }}"""
