"""Parts of a proposal that need a second confirmation: special paths of a diff, unusual commands of a plan."""

from collections.abc import Sequence

from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import sanitize_line


def special_parts(proposal: Proposal) -> tuple[str, ...]:
    """Return what needs a second confirmation: special paths of a diff, unusual commands of a plan."""
    return proposal.special if proposal.kind is Permission.DIFF or proposal.plan is not None else ()


def special_text(proposal: Proposal, special: Sequence[str]) -> str:
    """Return what an approval of these special parts does, as one line."""
    if proposal.plan is not None:
        return f"tasks must pass {'; '.join(sanitize_line(line, 120) for line in special)}"
    return f"this changes {', '.join(sanitize_line(path, 120) for path in special)}"
