"""Answers of hooks: what a command printed, read strictly. Anything unclear asks for a person."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.ids import ProposalId
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.strict_json import JsonError, read_bounded_json

MAX_ANSWER_CHARS = 20_000
MAX_REASON_CHARS = 500
NO_REASON = "no reason given"
INTERRUPTED = "it was interrupted before it answered"
NOT_ALL_SEEN = "the proposal was too long for the hook to read in full"


class HookVerdict(StrEnum):
    """Answer of a hook about a proposal. There is none that approves."""

    NONE = "none"
    ASK = "ask"
    REFUSE = "refuse"


_DECISIONS = frozenset({HookVerdict.ASK, HookVerdict.REFUSE})


class HookOutcome(Struct, frozen=True):
    """End of a hook's command: its standard output, or in `failure` why it counts as failed."""

    output: str = ""
    failure: str = ""
    seconds: float = 0.0


class HookAnswer(Struct, frozen=True):
    """Answer of a hook as it is recorded. `failed`: it is no answer of the hook's own."""

    verdict: HookVerdict
    reason: str = ""
    failed: bool = False


class HookRun(Struct, frozen=True):
    """A run of a hook for a proposal that waits; `answer` is None until it is recorded."""

    proposal: ProposalId
    hook: str
    point: HookPoint
    answer: HookAnswer | None = None


def read_hook_answer(outcome: HookOutcome) -> HookAnswer:
    """Return the answer about a proposal: nothing is no objection, and what is no valid answer asks for a person."""
    if outcome.failure:
        return _no_answer(outcome.failure)
    if len(outcome.output) > MAX_ANSWER_CHARS:
        return _no_answer(f"it printed more than {MAX_ANSWER_CHARS:,} characters")
    text = outcome.output.strip()
    if not text:
        return HookAnswer(HookVerdict.NONE)
    try:
        said = read_bounded_json(text)
    except JsonError as error:
        return _no_answer(f"its output is no answer: {error}")
    if not isinstance(said, dict):
        return _no_answer("its output is no answer: expected a JSON object")
    decision, reason = said.get("decision"), said.get("reason", "")
    if unknown := said.keys() - {"decision", "reason"}:
        return _no_answer(f"its output is no answer: unknown key {quoted(min(unknown))}")
    if not isinstance(reason, str):
        return _no_answer("its output is no answer: expected reason to be a text")
    if not isinstance(decision, str) or decision not in _DECISIONS:
        found = quoted(str(decision))
        return _no_answer(f"its output is no answer: expected the decision ask or refuse, found {found}")
    return HookAnswer(HookVerdict(decision), sanitize_line(reason, MAX_REASON_CHARS) or NO_REASON)


def as_notice(outcome: HookOutcome) -> HookAnswer:
    """Return what is recorded of a hook that was only told of an event: its output has no meaning."""
    if not outcome.failure:
        return HookAnswer(HookVerdict.NONE)
    return HookAnswer(HookVerdict.NONE, sanitize_line(outcome.failure, MAX_REASON_CHARS), failed=True)


def _no_answer(why: str) -> HookAnswer:
    return HookAnswer(HookVerdict.ASK, sanitize_line(why, MAX_REASON_CHARS), failed=True)


def describe_answer(hook: str, verdict: HookVerdict, reason: str) -> str:
    """Return an answer as a line, such as `hook secrets asks: a key is in it`."""
    verb = {HookVerdict.REFUSE: "refuses", HookVerdict.ASK: "asks"}.get(verdict, "has no objection")
    return f"hook {hook} {verb}: {reason}" if reason else f"hook {hook} {verb}"
