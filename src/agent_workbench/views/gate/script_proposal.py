"""View of a proposed script: what confines it, and all of its lines as those of a new file, so that each is seen."""

from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.skill_tools import ScriptCall
from agent_workbench.views.blocks import Block, Tone

FILE = "script.py"


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
    lines = _lines(call)
    head = f"--- /dev/null\n+++ b/{FILE}\n@@ -0,0 +1,{len(lines)} @@\n"
    return head + "".join(f"+{line}\n" for line in lines)


def script_size(call: ScriptCall) -> str:
    """Return the number of lines as text."""
    return counted_text(len(_lines(call)), "line")


def _lines(call: ScriptCall) -> list[str]:
    return call.script.removesuffix("\n").split("\n")
