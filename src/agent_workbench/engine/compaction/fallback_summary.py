"""Fallback summary, written by the workbench if the model cannot: each step in one line."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    InterruptCause,
    ModelInterrupted,
    ProposalReplaced,
    Recorded,
    ReflexionNoted,
    TestsFinished,
)
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.engine.prompt.step_history import last_compaction, steps_since_compaction
from agent_workbench.engine.runtime.text_limits import clip

ASKED_CHARS = 100
CAME_CHARS = 120
REFLEXION_CHARS = 300


def fallback_summary(history: Sequence[Recorded], limit_chars: int) -> str:
    """Return the previous summary and a line for each later step, in about `limit_chars` characters."""
    lines = list(_lines(steps_since_compaction(history)))
    before = last_compaction(history)
    earlier = clip(before.summary, limit_chars // 2 if lines else limit_chars) if before else ""
    left = limit_chars - len(earlier)
    kept: list[str] = []
    for line in reversed(lines):
        left -= len(line) + 1
        if left < 0:
            break
        kept.insert(0, line)
    more = len(lines) - len(kept)
    cut = [f"… {more} earlier steps are left out …"] if more else []
    return "\n".join([*([earlier] if earlier else []), *cut, *kept])


def _lines(steps: Sequence[Recorded]) -> Iterator[str]:
    """Yield a line for each request, with its outcome."""
    asked: dict[ProposalId, Proposal] = {}
    told = False
    for recorded in steps:
        match recorded.event:
            case ActionProposed(proposal=proposal) | ProposalReplaced(proposal=proposal):
                asked[proposal.id] = proposal
            case ActionDecided(verdict=Verdict.REJECT | Verdict.SKIP) as decided:
                why = f": {decided.reason}" if decided.reason else ""
                refused = "skipped" if decided.verdict is Verdict.SKIP else "rejected"
                yield f"- {_asked(asked.get(decided.proposal_id))}: {refused} by {decided.by}{why}"
            case TestsFinished() as ran:
                told = True
                yield f"- {log_line(ran)}"
            case ActionFinished() if told:
                told = False  # the line of the checks says it already
            case ActionFinished() as finished:
                came = _first_line(finished.observation)
                yield f"- {_asked(asked.get(finished.proposal_id))}: {finished.result}: {came}"
            case ActionRejected() as rejected:
                yield f"- step {rejected.step} was not taken: {_short(rejected.reason, CAME_CHARS)}"
            case ReflexionNoted() as noted:
                yield f"- reflexion: {_short(noted.text, REFLEXION_CHARS)}"
            case ModelInterrupted(cut=True) as cut:
                fault = "repeated itself" if cut.cause is InterruptCause.REPETITION else "was too long"
                yield f"- step {cut.step}: the answer {fault}"
            case _:
                pass


def _asked(proposal: Proposal | None) -> str:
    if proposal is None:
        return "a step"
    if proposal.kind is Permission.DIFF:
        return f"{proposal.tool} {', '.join(proposal.paths)}"
    if proposal.kind is Permission.CHECK:
        return proposal.tool.replace("_", " ")
    return f"{proposal.tool} {_short(proposal.text, ASKED_CHARS)}"


def _first_line(text: str) -> str:
    return _short(text.strip().partition("\n")[0], CAME_CHARS)


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
