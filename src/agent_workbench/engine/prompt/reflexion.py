"""Request for a reflexion: the applied diff, earlier attempts, and the question."""

from collections.abc import Sequence

from agent_workbench.engine.prompt.attempts import LOST, Attempt, Fate
from agent_workbench.engine.runtime.text_limits import clip

QUESTION = """\
Write one paragraph that begins with `Reflexion: `: what was wrong, how you know, and what you will do differently. \
No action yet."""
DIFF_CHARS = 3_000
MOST_TOLD = 8
WHY_CHARS = 300


def reflexion_request(tried: Sequence[Attempt], wording: int) -> str:
    """Return the request for a reflexion after these attempts; the same attempts give the same text."""
    lost = [each for each in tried if each.fate in LOST]
    parts = ["That did not work."]
    # Since version 1 the outcome of the diff told how the lines read that are not the model's own.
    if not wording and tried and tried[-1].fate is Fate.FAILED and _differs(tried[-1]):
        parts.append(f"The diff that was applied is not quite yours:\n{clip(tried[-1].proposal.diff, DIFF_CHARS)}")
    if len(lost) > 1:
        told = [f"- {clip(each.told, WHY_CHARS)}" for each in lost[-MOST_TOLD:]]
        earlier = [f"- … and {len(lost) - MOST_TOLD} before these"] if len(lost) > MOST_TOLD else []
        parts.append("\n".join(["Tried so far, and none of it worked:", *earlier, *told]))
    return "\n\n".join([*parts, QUESTION])


def _differs(attempt: Attempt) -> bool:
    return attempt.proposal.edited or bool(attempt.proposal.repaired or attempt.proposal.hunks)
