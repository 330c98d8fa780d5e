"""Views of a proposed script and playbook run: what confines it, and all of its lines as a file's."""

from collections.abc import Iterator

from agent_workbench.core.playbooks import PlaybookRun, summary
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.skill_tools import ScriptCall
from agent_workbench.core.tools.strict_json import indented_json
from agent_workbench.views.blocks import Block, Tone

SHOWN_CHARS = 8_000

FILE = "script.py"


def playbook_notes(run: PlaybookRun, sandbox: SandboxFacts | None) -> tuple[Block, ...]:
    """Return the run's values, its access and what else runs with it; `sandbox` is None if that is unknown."""
    return tuple(_notes(run, sandbox))


def _notes(run: PlaybookRun, sandbox: SandboxFacts | None) -> Iterator[Block]:
    request = run.request
    if request.check:
        yield Block("Check mode: tasks with check_mode: false and local plugins run all the same.", Tone.STRONG)
    else:
        yield Block("This run changes the hosts.", Tone.WARN, "!", Tone.WARN)
    values = (
        ("Playbook", request.playbook),
        ("Inventory", request.inventory or "the default of Ansible or ansible.cfg"),
        ("Limit", request.limit or "all hosts of the plays"),
        ("Tags", request.tags),
    )
    for label, value in values:
        if value:
            yield Block(f"{label}: {sanitize_line(value, SHOWN_CHARS)}")
    if request.extra_vars:
        yield Block("\n".join(("Extra vars:", *_lines(indented_json(request.extra_vars)))))
    yield Block(f"May use: {sanitize_line(run.access.text, SHOWN_CHARS)}", Tone.WARN)
    if sandbox is not None and not sandbox.holds:
        yield Block("No sandbox works here: it runs with your rights.", Tone.WARN, "!", Tone.WARN)
    if run.loaded:
        loaded = (f"  {sanitize_line(path, SHOWN_CHARS)}" for path in run.loaded)
        yield Block("\n".join(("Ansible also loads from the repository:", *loaded)), Tone.WARN)
    if not request.check:
        failed = "failed" if run.check_failed else "ended without a failure"
        yield Block(f"The run in check mode {failed}: {sanitize_line(summary(run.checked)) or 'no host was counted'}")
        for host in run.checked:
            yield Block(sanitize_line(host.text), Tone.DIM, indent=2)


def _lines(text: str) -> list[str]:
    return [f"  {sanitize_line(line, SHOWN_CHARS)}" for line in text.split("\n")]


def playbook_diff(run: PlaybookRun) -> str:
    """Return the playbook as the diff of a new file, so that each line is seen."""
    lines = run.text.removesuffix("\n").split("\n")
    head = f"--- /dev/null\n+++ b/{run.request.playbook}\n@@ -0,0 +1,{len(lines)} @@\n"
    return head + "".join(f"+{line}\n" for line in lines)


def script_notes(call: ScriptCall, sandbox: SandboxFacts | None) -> tuple[Block, ...]:
    """Return what the script runs with and what confines it; `sandbox` is None if that is unknown."""
    return (
        Block(f"Runs with the skill {sanitize_line(call.skill, 100)}, in its folder and its environment", Tone.STRONG),
        *((_confinement(sandbox),) if sandbox is not None else ()),
    )


def _confinement(sandbox: SandboxFacts) -> Block:
    if not sandbox.holds:
        return Block("No sandbox works here: it runs with your rights.", Tone.WARN, "!", Tone.WARN)
    network = "can reach the network" if sandbox.network else "has no network"
    told = f"In the sandbox: it writes to a temporary folder only and {network}."
    return Block(told, Tone.WARN if sandbox.network else Tone.DIM)


def script_diff(call: ScriptCall) -> str:
    """Return the script as the diff of a new file."""
    lines = _script_lines(call)
    head = f"--- /dev/null\n+++ b/{FILE}\n@@ -0,0 +1,{len(lines)} @@\n"
    return head + "".join(f"+{line}\n" for line in lines)


def script_size(call: ScriptCall) -> str:
    """Return the number of lines as text."""
    return counted_text(len(_script_lines(call)), "line")


def _script_lines(call: ScriptCall) -> list[str]:
    return call.script.removesuffix("\n").split("\n")
