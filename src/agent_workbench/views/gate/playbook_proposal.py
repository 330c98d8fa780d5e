"""View of a proposed playbook run: what is run where, what it may use, and the playbook as a file's lines."""

from collections.abc import Iterator

from agent_workbench.core.playbooks.access import PlaybookRun
from agent_workbench.core.playbooks.recap import summary
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.strict_json import indented_json
from agent_workbench.views.blocks import Block, Tone

SHOWN_CHARS = 8_000


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
