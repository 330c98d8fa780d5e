"""Notes beside a proposal: of a commit, a merge, a finish, a call, a script, a playbook run, notes or a plan."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from agent_workbench.core.ids import SessionId
from agent_workbench.core.playbooks import PlaybookRun, summary
from agent_workbench.core.ports.forge import ShownPullRequest
from agent_workbench.core.proposal_kinds import CommitProposal, ExternalProposal, KnowledgeProposal, MergeProposal
from agent_workbench.core.proposals import TRAILER, Proposal
from agent_workbench.core.proposed_action import TaskChange, ToolCall
from agent_workbench.core.proposed_plan import ProposedPlan
from agent_workbench.core.repo.workspace import MergeMethod, SandboxFacts
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole
from agent_workbench.core.tools.skill_tools import ScriptCall
from agent_workbench.core.tools.spec import MAX_SUMMARY_CHARS, ToolSpec
from agent_workbench.core.tools.strict_json import JsonError, indented_json, one_line, read_json
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.diff_document import DiffReader, FileHead

MAX_FILES = 200
MAX_COMMITS = 20
METHODS = {
    MergeMethod.FAST_FORWARD: "your branch moves to the task's commit; no commit is made",
    MergeMethod.MERGE: "a merge commit with this message",
    MergeMethod.SQUASH: "one new commit with this message and the journal's trailers, on top of your branch",
    MergeMethod.REBASE: "the task's commits are made again on top of your branch",
}
OF_APPROVAL = "<hash of your approval>"

SHOWN_CHARS = 8_000

FILE = "script.py"


def commit_notes(session: SessionId, proposal: CommitProposal) -> tuple[Block, ...]:
    """Return the final message with its trailer, and the files if their folded headers do not list them."""
    # The approval's event, and so its hash, is known only once it is given.
    trailer = f"{TRAILER}: {session}:<event>:{OF_APPROVAL}"
    return (
        Block(sanitize_whole(proposal.text.strip()), Tone.STRONG),
        Block(trailer, Tone.DIM, space_before=True),
        *_left_out(proposal),
        *_files(proposal),
    )


def merge_notes(proposal: MergeProposal, *, rejected: bool = False) -> tuple[Block, ...]:
    """Return the method of a merge and its commits, or its obstacles; and how what was `rejected` can be kept."""
    said = Block(sanitize_whole(proposal.text.strip()), Tone.STRONG)
    lead: tuple[Block, ...]
    if proposal.special:
        obstacles = Block("\n".join(sanitize_line(each) for each in proposal.special), Tone.WARN, "!", Tone.WARN)
        lead = (Block("It cannot be merged now:", Tone.BAD, space_before=True), obstacles)
    else:
        clear = "It can be merged. This changes your branch and your files; your uncommitted changes stay."
        lead = (Block(clear, Tone.GOOD, space_before=True),)
    commits = "\n".join(sanitize_line(each, 200) for each in proposal.brings)
    brings = (Block("Commits", Tone.DIM, space_before=True), Block(commits)) if commits else ()
    kept = "What you rejected can be kept for later tasks: M, then +"
    remark = (Block(kept, Tone.DIM),) if rejected else ()
    return (said, *_method(proposal), *lead, *_left_out(proposal), *remark, *brings, *_files(proposal))


def _left_out(proposal: TaskChange) -> tuple[Block, ...]:
    said = sanitize_line(proposal.left_out, 1_000)
    return (Block(said, Tone.WARN, "!", Tone.WARN, space_before=True),) if said else ()


def _method(proposal: MergeProposal) -> tuple[Block, ...]:
    """Return what the method of a merge makes, and the other methods; nothing for a merge in a journal of 0.1."""
    if proposal.method is None:
        return ()
    others = ", ".join(each for each in proposal.methods if each is not proposal.method)
    told = f"{proposal.method.capitalize()}: {METHODS[proposal.method]}."
    return (Block(f"{told} Other methods: {others}." if others else told, Tone.DIM, space_before=True),)


def finish_notes(run: TaskRun, proposal: Proposal) -> tuple[Block, ...]:
    """Return what an approval would end, the state of the checks, the attempts, and the model's reason."""
    diffs = sum(step.proposal.kind is Permission.DIFF for step in newest_steps(run.history))
    tried = f" {counted_text(diffs, 'diff')} came to the gate; none is in effect." if diffs else ""
    checked = Block(f"{run.checks_text.capitalize()}.{tried}", Tone.DIM if run.passes else Tone.WARN)
    said = sanitize_whole(proposal.text.strip()) or "The model gives no reason."
    return (
        Block(f"{run.task} would be done without changes and without a commit.", Tone.STRONG),
        checked,
        Block("Approve if the task needs no change; reject with a reason to have the model continue."),
        Block("The model says", Tone.DIM, space_before=True),
        Block(said),
    )


def call_notes(specs: Iterable[ToolSpec], proposal: Proposal) -> tuple[Block, ...]:
    """Return the call of a source's tool: name, source, its description and hints, the arguments and their schema."""
    if isinstance(proposal, ExternalProposal) and proposal.is_question:
        return _question_notes(proposal)
    spec = next((each for each in specs if each.name == proposal.tool), None)
    summary = sanitize_line(spec.summary, MAX_SUMMARY_CHARS) if spec is not None else ""
    source, said = (proposal.source, proposal.hints) if isinstance(proposal, ToolCall) else ("", ())
    hints = ", ".join(sanitize_line(hint, 200) for hint in said)
    server = f", {sanitize_line(spec.server, 200)}" if spec is not None and spec.server else ""
    return (
        Block(f"{sanitize_line(proposal.tool, 100)} from {sanitize_line(source, 100)}{server}", Tone.STRONG),
        *((Block(f"Its description: {summary}", Tone.DIM),) if summary else ()),
        *((Block(f"It says of itself, not verified: {hints}", Tone.WARN, "!", Tone.WARN),) if hints else ()),
        Block("Arguments", Tone.DIM, space_before=True),
        Block(sanitize_whole(indented_json(proposal.text))),
        *(_schema_notes(spec.input_schema) if spec is not None and spec.server else ()),
    )


def _question_notes(proposal: ExternalProposal) -> tuple[Block, ...]:
    """Return a server's question to the person, the values that would be sent, and what each decision does."""
    head, *said = map(sanitize_whole, proposal.hints or ("asks:",))
    gaps = Block("A null is a value that is missing: edit the answer to fill it in.", Tone.WARN, "!", Tone.WARN)
    return (
        Block(f"{sanitize_line(proposal.source, 100)} {head}", Tone.STRONG),
        *(Block(each, space_before=not at) for at, each in enumerate(said)),
        Block("Your answer", Tone.DIM, space_before=True),
        Block(sanitize_whole(proposal.text)),
        *((gaps,) if proposal.has_gaps else ()),
        Block(
            "Approve sends it, reject declines, skip cancels; the call goes on then. The server's words are not "
            "verified. The answer is kept in the session: no password belongs here.",
            Tone.DIM,
            space_before=True,
        ),
    )


def _schema_notes(schema: str) -> tuple[Block, ...]:
    """Return the schema of a server's tool, all of it, with a line for each argument."""
    try:
        read = read_json(schema)
    except JsonError:
        return (Block(sanitize_whole(schema), Tone.DIM, space_before=True),)
    parts = read if isinstance(read, dict) else {}
    properties = parts.get("properties")
    required = parts.get("required")
    named = required if isinstance(required, list) else []
    lines = [
        f"{name}{' (required)' if name in named else ''}: {one_line(each)}"
        for name, each in (properties.items() if isinstance(properties, dict) else ())
    ]
    lines += [f"{key}: {one_line(each)}" for key, each in parts.items() if key not in {"properties", "required"}]
    return (
        Block("Schema of the arguments", Tone.DIM, space_before=True),
        Block(sanitize_whole("\n".join(lines)), Tone.DIM),
    )


def note_notes(proposal: KnowledgeProposal) -> tuple[Block, ...]:
    """Return what an approval of notes writes, where they come from, and the notes that they change or repeat."""
    many = counted_text(len(proposal.paths), "note")
    blocks = [Block(f"{many} to keep beyond this task. Later tasks find and read what you take.", Tone.STRONG)]
    blocks += [Block(f"From: {sanitize_line(origin, 200)}", Tone.DIM) for origin in proposal.origins]
    blocks += [
        Block(f"{sanitize_line(path, 200)} exists; this changes it.", Tone.WARN, "!", Tone.WARN)
        for path in proposal.special
    ]
    for each in proposal.similar:
        said = f"{sanitize_line(each.path, 200)} repeats {sanitize_line(each.existing, 200)}:"
        blocks += [Block(said, Tone.WARN, "~", Tone.WARN), Block(sanitize_whole(each.text), Tone.DIM)]
    return tuple(blocks)


def folded_files(proposal: TaskChange) -> frozenset[int]:
    """Return the numbers, from 0, of the files in a commit's or merge's diff that the user reviewed before."""
    reviewed = frozenset(proposal.reviewed or ())
    # The diff has its files in the order of the paths. A header that says another name is not trusted.
    named = zip(_heads(proposal.diff) if reviewed else (), proposal.paths, strict=False)
    return frozenset(
        number
        for number, (head, path) in enumerate(named)
        if path in reviewed and sanitize_whole(path, keep_returns=True) in {head.path, head.old_path}
    )


def plan_notes(proposal: Proposal, plan: ProposedPlan) -> tuple[Block, ...]:
    """Return what an approval of a proposed plan does, its unusual commands, and the YAML that is written."""
    many, path = counted_text(len(plan.taken), "task"), sanitize_line(", ".join(proposal.paths), 200)
    effect = (
        f"{', '.join(task.id for task in plan.taken)} gets its accept_tests in {path}; nothing else of it changes, and "
        "they run only when you approve the checks."
        if plan.checks
        else f"A new plan of {many} replaces {path}; the old one is archived beside it."
        if plan.replaces
        else f"{many} in place of the tasks in {path} that are not over: these are removed, and withdrawn from the "
        "queue. Finished tasks stay."
        if plan.rest
        else f"{many} appended to {path}; your tasks and comments stay as they are."
    )
    left = ", ".join(each.task.id for each in plan.tasks if not each.taken)
    commands = "\n".join(f"$ {sanitize_whole(line)}" for line in proposal.special)
    unusual = (
        Block("No program of this repository's checks; look at them before you approve:", Tone.WARN, "!", Tone.WARN),
        Block(commands, Tone.STRONG),
    )
    return (
        Block(effect, Tone.STRONG),
        *((Block(f"Left out: {sanitize_line(left)}", Tone.DIM),) if left else ()),
        *(unusual if commands else ()),
        Block(sanitize_whole(proposal.text.strip()), space_before=True),
    )


@lru_cache(maxsize=1)
def _heads(diff: str) -> tuple[FileHead, ...]:
    """Return the file headers of a diff; cached, because every update asks for the same diff."""
    return DiffReader().read(diff).files


def _files(proposal: TaskChange) -> tuple[Block, ...]:
    """Return the files with their numbers of added and removed lines, or a remark on those that are folded."""
    remarks = _reviewed(len(folded_files(proposal)), len(proposal.unreviewed_paths))
    if proposal.reviewed:
        return remarks
    told = [f"{head.text}  +{head.added} −{head.removed}" for head in _heads(proposal.diff)]
    if not told:
        told = [sanitize_line(path, 300) for path in proposal.paths]
    more = len(told) - MAX_FILES
    shown = told[:MAX_FILES] + ([f"… and {more} more"] if more > 0 else [])
    many = counted_text(len(told), "file")
    return (*remarks, Block(many, Tone.DIM, space_before=True), Block("\n".join(shown))) if told else ()


def _reviewed(folded: int, others: int) -> tuple[Block, ...]:
    """Return remarks on the files that are not as the user approved them, and on those that are folded."""
    new = f"{counted_text(others, 'file')} you did not approve exactly so before: shown in full"
    known = f"{counted_text(folded, 'file')} exactly as you approved {'it' if folded == 1 else 'them'}: folded"
    return (
        *((Block(new, Tone.WARN, "!", Tone.WARN, space_before=True),) if others else ()),
        *((Block(known, Tone.DIM if others else Tone.GOOD, space_before=not others),) if folded else ()),
    )


def pull_request_lines(shown: ShownPullRequest) -> tuple[str, ...]:
    """Return the lines about a pull request before the question whether to open it."""
    commits = [f"  {sanitize_line(each)}" for each in shown.commits[:MAX_COMMITS]]
    more = len(shown.commits) - MAX_COMMITS
    return (
        sanitize_line(shown.title),
        *commits,
        *([f"  … and {more} more"] if more > 0 else []),
        f"It goes to {sanitize_line(shown.address)}, with the token of {shown.token_variable}.",
        "Commits below these that the forge lacks are pushed too.",
    )


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
