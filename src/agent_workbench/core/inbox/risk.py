"""Risk of a proposal: what an approval without a close look could cost. It orders the inbox and decides nothing."""

from enum import StrEnum

from agent_workbench.core.proposals import KEEP_CHANGES, Proposal, unreviewed_paths
from agent_workbench.core.settings import Permission

RUNS_CODE = frozenset({Permission.CHECK, Permission.COMMAND, Permission.SCRIPT})
LEAVES_REPO = frozenset({Permission.MERGE, Permission.EXTERNAL, Permission.INFRASTRUCTURE})
"""Proposals whose effect is outside of the task's workspace."""


class Risk(StrEnum):
    """Risk of a proposal, the highest first."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """Position in the order of the inbox, from 0."""
        return tuple(Risk).index(self)


def risk_of(proposal: Proposal, *, foreign: bool, confined: bool) -> Risk:
    """Return the risk of a proposal.

    A task from outside (`foreign`) makes it one level higher. `confined`: a sandbox holds for what it runs.
    """
    own = _own_risk(proposal, confined=confined)
    return tuple(Risk)[max(0, own.rank - 1)] if foreign else own


def _own_risk(proposal: Proposal, *, confined: bool) -> Risk:
    if proposal.special or proposal.kind in LEAVES_REPO or (proposal.kind in RUNS_CODE and not confined):
        return Risk.HIGH
    runs = proposal.kind in RUNS_CODE - {Permission.CHECK} or proposal.kind is Permission.PLAN
    return Risk.MEDIUM if runs or proposal.tool == KEEP_CHANGES or unreviewed_paths(proposal) else Risk.LOW
