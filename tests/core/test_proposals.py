import pytest
from msgspec.structs import fields, replace

from agent_workbench.core.events import ActionProposed
from agent_workbench.core.events.codec import JsonObject, decode_event
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.inbox import reference_to
from agent_workbench.core.playbooks import HostRecap, PlaybookRequest, PlaybookRun, RunAccess
from agent_workbench.core.proposal_kinds import (
    KINDS,
    CommandProposal,
    DiffProposal,
    ExternalProposal,
    InfrastructureProposal,
    KnowledgeProposal,
    MergeProposal,
    PlanProposal,
    Proposal,
)
from agent_workbench.core.proposals import ANSWER_SERVER, PROPOSE_PLAN, shown_sha
from agent_workbench.core.proposed_action import SimilarNote
from agent_workbench.core.proposed_plan import ProposedPlan
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Permission

PROPOSAL = DiffProposal(ProposalId("P-1"), "write_diff", "text", 1, "diff", ("one", "two"))
NOTES = KnowledgeProposal(PROPOSAL.id, "remember", "text", 1, "diff")
MERGING = MergeProposal(PROPOSAL.id, "merge", "text", 1, "diff")
OTHERS: dict[str, tuple[Proposal, Proposal]] = {
    "kind": (PROPOSAL, CommandProposal(PROPOSAL.id, "write_diff", "text", 1, "diff", ("one", "two"))),
    "tool": (PROPOSAL, replace(PROPOSAL, tool="other")),
    "text": (PROPOSAL, replace(PROPOSAL, text="other")),
    "diff": (PROPOSAL, replace(PROPOSAL, diff="other")),
    "commands": (PROPOSAL, replace(PROPOSAL, commands=("other",))),
    "brings": (MERGING, replace(MERGING, brings=("other",))),
    "similar": (NOTES, replace(NOTES, similar=(SimilarNote("a.md", "b.md", "text"),))),
    "origins": (NOTES, replace(NOTES, origins=("other",))),
    "method": (MERGING, replace(MERGING, method=MergeMethod.SQUASH)),
    "left_out": (MERGING, replace(MERGING, left_out="the hook pre-commit does not run")),
}


REQUEST = PlaybookRequest("site.yml")
RUN = PlaybookRun(REQUEST, "- hosts: all\n", RunAccess(("~/.ssh/a",)))
INFRASTRUCTURE = InfrastructureProposal(PROPOSAL.id, "run_playbook", "text", 1, playbook=RUN)
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


PLANNED = PlanProposal(PROPOSAL.id, PROPOSE_PLAN, "text", 1, plan=ProposedPlan("goal"))
CALL = ExternalProposal(PROPOSAL.id, "write_diff", "text", 1, source="mcp:weather", spec="0" * 16, hints=("read-only",))
OTHER_CALLS = {
    "source": replace(CALL, source="mcp:other"),
    "spec": replace(CALL, spec="1" * 16),
    "hints": replace(CALL, hints=("read-only", "safe")),
}


@pytest.mark.parametrize("name", sorted(OTHER_CALLS))
def test_what_is_shown_of_a_call_changes_the_hash(name: str) -> None:
    assert shown_sha(OTHER_CALLS[name]) != shown_sha(CALL)
    assert shown_sha(replace(CALL, source="")) != shown_sha(CALL)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_what_is_shown_changes_the_hash(name: str) -> None:
    shown, other = OTHERS[name]
    assert shown_sha(shown) != shown_sha(other)


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
    assert {each.name for kind in KINDS.values() for each in fields(kind)} == {
        *(OTHERS.keys() - {"kind"}),
        *OTHER_CALLS,
        "method",  # in the hash unless it is None
        "methods",
        "reviewed",  # in the hash unless it is None: tests/engine/test_reviewed_files.py
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
    shown = {shown_sha(PlanProposal(ProposalId("P-1"), PROPOSE_PLAN, "tasks: []", 0, plan=plan)) for plan in ways}
    assert len(shown) == len(ways)


DIFF = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
# The fields of a recorded proposal, and the digest with which the first version of the kinds named it.
RECORDED: dict[str, tuple[JsonObject, str]] = {
    "read": ({"source": "skill", "spec": "0" * 16, "hints": ["h"]}, "750dadd0facfc1efcef7d9b39c3ae41a"),
    "diff": (
        {"diff": DIFF, "paths": ["a"], "special": ["ci.yml"], "hunks": [{"id": "h", "fate": "taken"}]},
        "242b2b94b432ddd1b68bf894c41d5ad7",
    ),
    "check": ({"commands": ["make test", "make lint"], "purpose": "final"}, "07ce636c443f84291e40709b32d4e9e8"),
    "command": ({"commands": ["make"]}, "a955b79405df9fe30ba8aa1af740211b"),
    "commit": (
        {"diff": DIFF, "paths": ["a"], "reviewed": ["a"], "left_out": "no hook runs"},
        "bc237a91bc2131abf2efdd7d3a5bd515",
    ),
    "merge": (
        {
            "diff": DIFF,
            "paths": ["a"],
            "brings": ["c1"],
            "method": "squash",
            "methods": ["squash", "merge"],
            "reviewed": [],
            "left_out": "x",
        },
        "15afca4fa49b101a9a4e6fa5038b6174",
    ),
    "summary": (
        {"fallback": True, "outlook": {"before": 9, "after": 1, "through_seq": 3}},
        "1c0be1b1e35dd283734b72d3d3531904",
    ),
    "finish": ({}, "7edc2bddd218a9aa165d72074d6c6b50"),
    "plan": (
        {
            "plan": {"goal": "g", "rest": True},
            "special": ["rm"],
            "paths": ["PLAN.yaml"],
            "source": "consultant",
            "spec": "1" * 16,
        },
        "eb027e2fb096153578ac1147c24fe8fe",
    ),
    "knowledge": (
        {
            "diff": DIFF,
            "paths": ["n.md"],
            "origins": ["a"],
            "similar": [{"path": "a", "existing": "b", "text": "t"}],
        },
        "580823268c39da986757f0738dc629bd",
    ),
    "script": ({"source": "skill", "spec": "0" * 16}, "81f4561ad12ac9bcee1116722cbd45f0"),
    "external": ({"source": "mcp:s", "spec": "0" * 16, "hints": ["h"]}, "84d4f5f723f49bc693e8f05de6aa8488"),
    "infrastructure": (
        {"playbook": {"request": {"playbook": "site.yml"}, "text": "- hosts: all\n", "access": {"agent": True}}},
        "9156ee6cf0be8328cb15712d024aa94e",
    ),
}


@pytest.mark.parametrize("kind", Permission)
def test_a_parked_proposal_keeps_its_digest(kind: Permission) -> None:
    given, digest = RECORDED[kind]
    event = decode_event(
        "action_proposed",
        {"proposal": {"id": "P-1", "kind": kind.value, "tool": "t", "text": "text", "step": 1, **given}},
    )
    assert isinstance(event, ActionProposed)
    reference = reference_to(SessionId("20261122T144633-aueuzr"), event.proposal)
    assert str(reference) == f"20261122T144633-aueuzr/P-1@{digest}"


@pytest.mark.parametrize(
    ("tool", "text", "facts"),
    [
        ("answer_server", '{\n  "name": "Ann"\n}', (True, False, True)),
        ("answer_server", '{\n  "name": null,\n  "people": 2\n}', (True, True, True)),
        ("answer_server", '{\n  "name": "\\": null"\n}', (True, False, True)),
        ("answer_server", "{}", (True, False, False)),
        ("weather", '{\n  "name": null\n}', (False, False, False)),
    ],
)
def test_the_answer_to_a_server_is_edited_and_has_gaps(tool: str, text: str, facts: tuple[bool, ...]) -> None:
    call = replace(CALL, tool=tool, text=text)
    assert (call.is_question, call.has_gaps, call.editable) == facts


def test_a_parked_answer_keeps_its_digest() -> None:
    asked = ExternalProposal(
        *(PROPOSAL.id, ANSWER_SERVER, "{}", 1), source="mcp:s", spec="0" * 16, hints=("asks", "Which?"), edited=True
    )
    assert shown_sha(asked) == "6722ea2bb08a0747c47663ab20efa66f1a96e329ccd58b4b29c334f909a96c1c"
