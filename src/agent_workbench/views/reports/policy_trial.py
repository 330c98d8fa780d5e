"""Trial of a policy as text and as JSON: what would pass, what would be refused, and what would park the task."""

from collections import Counter
from collections.abc import Iterable, Iterator

from agent_workbench.core.history.mode_approvals import PolicyTrial, TriedProposal
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.gate.proposal_views import describe

SUBJECT_CHARS = 60
FATES = ("pass", "refuse", "park")


def trial_text(trial: PolicyTrial) -> str:
    """Return the trial as lines for a person."""
    return "\n".join(_lines(trial))


def trial_document(trial: PolicyTrial) -> dict[str, object]:
    """Return the trial as a JSON document."""
    return {
        "task": trial.task.id,
        "origin": trial.task.origin.value,
        "sandbox": trial.sandbox.holds,
        "checks": _entry(trial.checks) if trial.checks is not None else None,
        "similar": trial.similar,
        "sessions": [
            {"session": each.session, "tasks": list(each.tasks), "proposals": [_entry(one) for one in each.tried]}
            for each in trial.sessions
        ],
    }


def _entry(tried: TriedProposal) -> dict[str, object]:
    proposal = tried.proposal
    kind, subject, _ = describe(proposal)
    return {
        "id": proposal.id,
        "kind": proposal.kind.value,
        "about": f"{kind} {subject}".strip(),
        "fate": tried.fate,
        "why": tried.why,
    }


def _lines(trial: PolicyTrial) -> Iterator[str]:
    task = trial.task
    whose = "" if task.origin is TaskOrigin.LOCAL else f", not your own ({task.origin})"
    yield sanitize_line(f"{task.id}{whose}: {task.description}", 200)
    yield "a sandbox confines commands" if trial.sandbox.holds else f"no sandbox holds: {trial.sandbox.why}"
    if trial.checks is not None:
        yield "\nits checks:"
        yield from _rows((trial.checks,))
    if not trial.sessions:
        yield "\nno session is recorded that the policy could be tried on"
        return
    of = f"tasks similar to {task.id}" if trial.similar else task.id
    yield f"\ntried on {counted_text(len(trial.sessions), 'recorded session')} of {of}:"
    for each in trial.sessions:
        yield f"\n{each.session} ({', '.join(each.tasks)})"
        yield from _rows(each.tried)
    fates = Counter(one.fate for each in trial.sessions for one in each.tried)
    yield "\n" + ", ".join(f"{fates[fate]} {fate}" for fate in FATES)


def _rows(tried: Iterable[TriedProposal]) -> Iterator[str]:
    """Yield a row for each kind of decision, in the order of the first; equal ones are counted."""
    rows = Counter((each.fate, *describe(each.proposal)[:2], each.why) for each in tried)
    for (fate, kind, subject, why), count in rows.items():
        times = f" ({count} times)" if count > 1 else ""
        yield f"  {fate:<6}  {kind}  {sanitize_line(subject, SUBJECT_CHARS)}{times}: {sanitize_line(why, 200)}"
