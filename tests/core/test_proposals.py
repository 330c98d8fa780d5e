import pytest
from msgspec.structs import fields, replace

from agent_workbench.core.ids import ProposalId
from agent_workbench.core.plan.proposed import ProposedPlan
from agent_workbench.core.playbooks.access import PlaybookRequest, PlaybookRun, RunAccess
from agent_workbench.core.playbooks.recap import HostRecap
from agent_workbench.core.proposals import PROPOSE_PLAN, Proposal, SimilarNote, shown_sha
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Permission

PROPOSAL = Proposal(ProposalId("P-1"), Permission.DIFF, "write_diff", "text", 1, "diff", ("one", "two"))
OTHERS = {
    "kind": replace(PROPOSAL, kind=Permission.COMMAND),
    "tool": replace(PROPOSAL, tool="other"),
    "text": replace(PROPOSAL, text="other"),
    "diff": replace(PROPOSAL, diff="other"),
    "commands": replace(PROPOSAL, commands=("other",)),
    "brings": replace(PROPOSAL, brings=("other",)),
    "similar": replace(PROPOSAL, similar=(SimilarNote("a.md", "b.md", "text"),)),
    "origins": replace(PROPOSAL, origins=("other",)),
    "method": replace(PROPOSAL, method=MergeMethod.SQUASH),
    "left_out": replace(PROPOSAL, left_out="the hook pre-commit does not run"),
}


REQUEST = PlaybookRequest("site.yml")
RUN = PlaybookRun(REQUEST, "- hosts: all\n", RunAccess(("~/.ssh/a",)))
INFRASTRUCTURE = replace(PROPOSAL, kind=Permission.INFRASTRUCTURE, playbook=RUN)
OTHER_RUNS = (
    replace(RUN, request=replace(REQUEST, playbook="other.yml")),
    replace(RUN, request=replace(REQUEST, inventory="prod")),
    replace(RUN, request=replace(REQUEST, limit="web")),
    replace(RUN, request=replace(REQUEST, tags="a")),
    replace(RUN, request=replace(REQUEST, extra_vars='{"a": 1}')),
    replace(RUN, request=replace(REQUEST, check=False)),
    replace(RUN, text="- hosts: web\n"),
    replace(RUN, access=RunAccess()),
    replace(RUN, access=RunAccess(("~/.ssh/a",), agent=True)),
    replace(RUN, access=RunAccess(("~/.ssh/a",), passwords=("the vault password in A",))),
    replace(RUN, loaded=("ansible.cfg",)),
    replace(RUN, checked=(HostRecap("web", changed=1),)),
    replace(RUN, check_failed=True),
)


@pytest.mark.parametrize("other", OTHER_RUNS)
def test_what_is_shown_of_a_run_changes_the_hash(other: PlaybookRun) -> None:
    assert shown_sha(replace(INFRASTRUCTURE, playbook=other)) != shown_sha(INFRASTRUCTURE)
    assert shown_sha(replace(INFRASTRUCTURE, playbook=None)) != shown_sha(INFRASTRUCTURE)


PLANNED = replace(PROPOSAL, kind=Permission.PLAN, plan=ProposedPlan("goal"))
CALL = replace(PROPOSAL, kind=Permission.EXTERNAL, source="mcp:weather", spec="0" * 16, hints=("read-only",))
OTHER_CALLS = {
    "source": replace(CALL, source="mcp:other"),
    "spec": replace(CALL, spec="1" * 16),
    "hints": replace(CALL, hints=("read-only", "safe")),
}


@pytest.mark.parametrize("name", sorted(OTHER_CALLS))
def test_what_is_shown_of_a_call_changes_the_hash(name: str) -> None:
    assert shown_sha(OTHER_CALLS[name]) != shown_sha(CALL)
    assert shown_sha(replace(PROPOSAL, kind=Permission.EXTERNAL)) != shown_sha(CALL)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_what_is_shown_changes_the_hash(name: str) -> None:
    assert shown_sha(OTHERS[name]) != shown_sha(PROPOSAL)


def test_a_plan_that_replaces_the_old_one_is_another_proposal() -> None:
    assert shown_sha(replace(PLANNED, plan=ProposedPlan("goal", replaces=True))) != shown_sha(PLANNED)
    assert shown_sha(PLANNED) != shown_sha(replace(PLANNED, plan=None))


def test_parts_do_not_run_into_each_other() -> None:
    assert shown_sha(replace(PROPOSAL, text="a", diff="b")) != shown_sha(replace(PROPOSAL, text="ab", diff=""))
    assert shown_sha(replace(PROPOSAL, text="a\0b", diff="")) != shown_sha(replace(PROPOSAL, text="a", diff="b"))
    assert shown_sha(replace(PROPOSAL, commands=("a", "b"))) != shown_sha(replace(PROPOSAL, commands=("a\0b",)))


def test_any_text_has_a_hash() -> None:
    assert len(shown_sha(replace(PROPOSAL, text="\ud800"))) == 64


def test_every_field_is_known() -> None:
    # Who adds a field that a gate shows has to add it to the hash.
    assert {each.name for each in fields(Proposal)} == {
        *OTHERS,
        *OTHER_CALLS,
        "method",  # in the hash unless it is None
        "methods",
        "reviewed",  # in the hash unless it is None: tests/engine/approval/test_reviewed_files.py
        "id",
        "step",
        "paths",
        "special",
        "preimages",
        "purpose",
        "edited",
        "repaired",
        "fallback",
        "outlook",
        "hunks",
        "plan",
        "playbook",
    }


def test_an_approval_of_a_plan_counts_for_what_it_does_to_the_plan_alone() -> None:
    ways = (ProposedPlan("g"), ProposedPlan("g", replaces=True), ProposedPlan("g", rest=True))
    shown = {
        shown_sha(Proposal(ProposalId("P-1"), Permission.PLAN, PROPOSE_PLAN, "tasks: []", 0, plan=plan))
        for plan in ways
    }
    assert len(shown) == len(ways)
